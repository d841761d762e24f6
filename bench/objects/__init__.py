"""Ntuples in object stores."""
