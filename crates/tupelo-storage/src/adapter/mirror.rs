//! Several namespaces as one: written to all of them, and read from the first that answers.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::error::{Error, ErrorKind, Result};
use crate::objects::{Condition, NewObject, ObjectEntry, ObjectRange, ObjectSink, ObjectSource, ObjectVersion};
use crate::source::Hints;

/// The key of the data set in a mirror; members have their own keys for it.
const BASE: &str = "mirrored";

/// One data set in several namespaces.
///
/// Reads go to the first member, and to the next one if that has no such object or cannot be reached: the fastest should
/// come first. Writes go to all members at the same time, and an error of one is an error. The anchor is published in one
/// after the other. Members are listed by themselves, not as a mirror.
#[derive(Debug)]
pub struct Mirror<O: ?Sized> {
    /// Each with the key of the data set.
    members: Vec<(Arc<O>, String)>,
}

impl<O: ObjectSource + ?Sized> Mirror<O> {
    /// A mirror of data sets, each given by its namespace and key. Also returns the key of the data set in the mirror.
    pub fn new(members: Vec<(Arc<O>, String)>) -> (Self, String) {
        (Self { members }, BASE.to_owned())
    }

    /// The result of the first member that has one. An error that says more than that the object is missing comes first.
    fn first<T>(&self, read: impl Fn(&O, &str) -> Result<T>) -> Result<T> {
        let mut failed: Option<Error> = None;
        for (member, base) in &self.members {
            match read(member, base) {
                Ok(found) => return Ok(found),
                Err(error) if is_absent(&error) => {
                    if failed.as_ref().is_none_or(Error::is_not_found) {
                        failed = Some(error);
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Err(failed.unwrap_or_else(|| Error::new(ErrorKind::NotFound, "read", self, "it has no members")))
    }
}

/// Whether another member may have the object.
fn is_absent(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Unavailable | ErrorKind::Timeout)
}

/// The key in a member.
fn own_key(key: &str, base: &str) -> String {
    format!("{base}{}", key.strip_prefix(BASE).unwrap_or(key))
}

impl<O: ObjectSource + ?Sized> fmt::Display for Mirror<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.members.iter().map(|(member, base)| format!("{member}{base}")).collect();
        write!(f, "ntpl+mirror:{}", names.join(","))
    }
}

impl<O: ObjectSource + ?Sized> ObjectSource for Mirror<O> {
    fn hints(&self) -> Hints {
        let none = Hints { gap_bytes: 0, max_request_bytes: 1, concurrency: 1 };
        self.members.first().map_or(none, |(member, _)| member.hints())
    }

    fn reads_in_place(&self) -> bool {
        self.members.iter().all(|(member, _)| member.reads_in_place())
    }

    fn get(&self, key: &str, max_bytes: u64) -> Result<(Bytes, ObjectVersion)> {
        self.first(|member, base| member.get(&own_key(key, base), max_bytes))
    }

    fn get_ranges(&self, ranges: &[ObjectRange]) -> Result<Vec<Bytes>> {
        let read = |member: &O, base: &str| {
            let own = |it: &ObjectRange| ObjectRange { key: own_key(&it.key, base).into(), range: it.range.clone() };
            member.get_ranges(&ranges.iter().map(own).collect::<Vec<_>>())
        };
        self.first(read)
    }

    fn list(&self, _: &str) -> Result<Vec<ObjectEntry>> {
        Err(Error::new(ErrorKind::NotSupported, "list", self, "list the members of the mirror one by one"))
    }
}

impl Mirror<dyn ObjectSink> {
    /// Does something with all members at the same time.
    fn all(&self, write: impl Fn(&dyn ObjectSink, &str) -> Result<()> + Sync) -> Result<()> {
        let flag = crate::cancel::Scope::current().map(|scope| scope.flag());
        std::thread::scope(|scope| {
            let begin = |(member, base): &'_ (Arc<dyn ObjectSink>, String)| {
                let (member, base, flag, write) = (Arc::clone(member), base.clone(), flag.clone(), &write);
                scope.spawn(move || crate::cancel::with_flag(flag, || write(&*member, &base)))
            };
            let threads: Vec<_> = self.members.iter().map(begin).collect();
            let lost = |_| Error::new(ErrorKind::Other, "write to", self, "a thread ended without a result");
            // All have ended when the first error is returned.
            let results: Vec<_> = threads.into_iter().map(|thread| thread.join().map_err(lost)?).collect();
            results.into_iter().collect()
        })
    }
}

/// The states of the members as one version: a line for each, of ETag and generation. An object that does not exist has
/// neither.
fn joined(states: &[Condition]) -> Condition {
    if states.iter().all(|state| *state == Condition::Absent) {
        return Condition::Absent;
    }
    let line = |state: &Condition| match state {
        Condition::Absent => String::new(),
        Condition::Version(ObjectVersion { etag, generation }) => {
            format!("{}\t{}", etag.as_deref().unwrap_or_default(), generation.as_deref().unwrap_or_default())
        }
    };
    let etag = Some(states.iter().map(line).collect::<Vec<_>>().join("\n"));
    Condition::Version(ObjectVersion { etag, generation: None })
}

/// The state of each member.
fn split(condition: &Condition, members: usize) -> Vec<Condition> {
    let Condition::Version(ObjectVersion { etag, .. }) = condition else { return vec![Condition::Absent; members] };
    let one = |line: &str| match line.split_once('\t') {
        None => Condition::Absent,
        Some((etag, generation)) => {
            let [etag, generation] = [etag, generation].map(|text| Some(text.to_owned()).filter(|it| !it.is_empty()));
            Condition::Version(ObjectVersion { etag, generation })
        }
    };
    etag.as_deref().unwrap_or_default().split('\n').map(one).collect()
}

impl ObjectSink for Mirror<dyn ObjectSink> {
    fn put(&self, objects: &[NewObject]) -> Result<()> {
        self.all(|member, base| {
            let own = |it: &NewObject| NewObject { key: own_key(&it.key, base), pieces: it.pieces.clone() };
            member.put(&objects.iter().map(own).collect::<Vec<_>>())
        })
    }

    fn flush(&self) -> Result<()> {
        self.all(|member, _| member.flush())
    }

    /// The object is that of the first member that has one.
    fn state(&self, key: &str, max_bytes: u64) -> Result<(Condition, Option<Bytes>)> {
        let (mut states, mut found) = (Vec::with_capacity(self.members.len()), None);
        for (member, base) in &self.members {
            let (state, bytes) = member.state(&own_key(key, base), max_bytes)?;
            states.push(state);
            found = found.or(bytes);
        }
        Ok((joined(&states), found))
    }

    fn publish(&self, key: &str, bytes: Bytes, condition: &Condition) -> Result<()> {
        let conditions = split(condition, self.members.len());
        if conditions.len() != self.members.len() {
            return Err(Error::new(ErrorKind::Other, "publish", self, "the condition is not one of this mirror"));
        }
        for (index, ((member, base), own)) in self.members.iter().zip(&conditions).enumerate() {
            member.publish(&own_key(key, base), bytes.clone(), own).map_err(|error| match index {
                0 => error,
                // Its objects must not be removed.
                _ => Error::new(ErrorKind::Other, "publish", self, "it is visible in some members only")
                    .with_source(error),
            })?;
        }
        Ok(())
    }

    fn honours_conditions(&self, probe: &str) -> Result<bool> {
        let honours = |(member, base): &(Arc<dyn ObjectSink>, String)| member.honours_conditions(&own_key(probe, base));
        self.members.iter().try_fold(true, |all, member| Ok(all && honours(member)?))
    }

    fn delete(&self, keys: &[String]) -> Result<()> {
        self.all(|member, base| member.delete(&keys.iter().map(|key| own_key(key, base)).collect::<Vec<_>>()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::ObjectMemory;

    fn object(key: &str, bytes: &'static str) -> NewObject {
        NewObject { key: key.to_owned(), pieces: vec![Bytes::from_static(bytes.as_bytes())] }
    }

    fn mirror(stores: [&ObjectMemory; 2]) -> Mirror<dyn ObjectSink> {
        let [first, second] = stores.map(|store| Arc::new(store.clone()) as Arc<dyn ObjectSink>);
        Mirror::new(vec![(first, "a".to_owned()), (second, "dir/b".to_owned())]).0
    }

    #[test]
    fn writes_go_to_all_and_reads_to_the_first_that_answers() {
        let (first, second) = (ObjectMemory::new(), ObjectMemory::new());
        let both = mirror([&first, &second]);
        both.put(&[object("mirrored.objects/x/0", "zero"), object("mirrored.objects/x/1", "one")]).unwrap();
        both.flush().unwrap();
        both.publish(BASE, Bytes::from_static(b"anchor"), &Condition::Absent).unwrap();
        assert_eq!(first.get("a.objects/x/1", 9).unwrap().0, "one");
        assert_eq!(second.get("dir/b", 9).unwrap().0, "anchor");
        let range = ObjectRange { key: "mirrored.objects/x/0".into(), range: 1..3 };
        let read = || both.get_ranges(std::slice::from_ref(&range)).unwrap();
        second.reset_counts();
        assert_eq!((read(), second.counts().gets), (vec![Bytes::from_static(b"er")], 0));
        first.fail_get(0);
        assert_eq!(read(), ["er"]);
        first.delete(&["a.objects/x/0".to_owned()]).unwrap();
        assert_eq!(read(), ["er"]);
        both.delete(&["mirrored.objects/x/0".to_owned()]).unwrap();
        assert!(both.get_ranges(std::slice::from_ref(&range)).unwrap_err().is_not_found());
        assert_eq!(both.list("").unwrap_err().kind(), ErrorKind::NotSupported);
        assert_eq!(both.to_string().matches("dir/b").count(), 1);
    }

    #[test]
    fn an_error_of_one_member_is_an_error() {
        let (first, second) = (ObjectMemory::new(), ObjectMemory::new());
        let both = mirror([&first, &second]);
        second.fail_put(0);
        assert_eq!(both.put(&[object("mirrored.objects/x/0", "zero")]).unwrap_err().kind(), ErrorKind::Unavailable);
        first.fail_get(0);
        assert_eq!(both.get(BASE, 9).unwrap_err().kind(), ErrorKind::Unavailable, "the first may have it");
    }

    #[test]
    fn the_anchor_is_replaced_in_all_or_refused() {
        let (first, second) = (ObjectMemory::new(), ObjectMemory::new());
        let both = mirror([&first, &second]);
        both.publish(BASE, Bytes::from_static(b"1"), &Condition::Absent).unwrap();
        // A pointer has the same state.
        let (condition, bytes) = ObjectSink::state(&&both, BASE, 9).unwrap();
        assert_eq!(bytes.unwrap(), "1");
        both.publish(BASE, Bytes::from_static(b"2"), &condition).unwrap();
        assert_eq!(second.get("dir/b", 9).unwrap().0, "2");
        let error = both.publish(BASE, Bytes::from_static(b"3"), &condition).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Changed);
        // Another writer replaced it in the second one only.
        let (condition, _) = both.state(BASE, 9).unwrap();
        let (own, _) = second.state("dir/b", 9).unwrap();
        second.publish("dir/b", Bytes::from_static(b"other"), &own).unwrap();
        let error = both.publish(BASE, Bytes::from_static(b"4"), &condition).unwrap_err();
        assert!(error.to_string().contains("it is visible in some members only"), "{error}");
        assert_eq!(second.get("dir/b", 9).unwrap().0, "other");
        // Members may differ when it is replaced in both.
        let (condition, _) = both.state(BASE, 9).unwrap();
        both.publish(BASE, Bytes::from_static(b"5"), &condition).unwrap();
        assert_eq!([first.get("a", 9).unwrap().0, second.get("dir/b", 9).unwrap().0], ["5", "5"]);
        // Only the second one has it already.
        first.delete(&["a".to_owned()]).unwrap();
        let (condition, bytes) = both.state(BASE, 9).unwrap();
        assert_eq!(bytes.unwrap(), "5");
        both.publish(BASE, Bytes::from_static(b"6"), &condition).unwrap();
        first.delete(&["a".to_owned()]).unwrap();
        let error = both.publish(BASE, Bytes::from_static(b"4"), &Condition::Absent).unwrap_err();
        assert!(error.to_string().contains("it is visible in some members only"), "{error}");
        assert!(both.honours_conditions("mirrored.objects/x/probe").unwrap());
        second.ignore_conditions(true);
        assert!(!both.honours_conditions("mirrored.objects/x/probe").unwrap());
    }
}
