#ifdef __CLING__
#pragma link off all globals;
#pragma link off all classes;
#pragma link off all functions;
#pragma link C++ class Base+;
#pragma link C++ class Evolving+;
#pragma link C++ class Headless-;
#pragma link C++ class Custom-;
#pragma link C++ class Holder+;
#pragma link C++ class std::vector<Evolving>+;
#pragma link C++ function write_versions;
#endif
