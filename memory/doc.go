// Package memory keeps what the bot must not lose in one bbolt file: the logs
// of its places, the journal of its turns, and what it knows. It is the
// core.Store of a bot that runs on one machine. It decides nothing: when a turn
// is taken, what a memory is worth, and what a person may ask for is the
// business of others.
//
// # The file
//
// The data directory (0700) holds one file, synthbot.db (0600), of the buckets
// below. Numbers in keys are big endian. A place's key is its path with '\x01'
// for '/' and an ending '\x00'; elements of a path hold no control characters,
// so a place and all below it are one contiguous range, in the order of paths.
// Every key spells its place out: what can be read of a damaged file is useful
// by itself.
//
//	meta     name → schema version, clean flag, salt, floor, the file's own name
//	places   place → head: last number, answered mark, count, time, private (fields)
//	log      place, seq → entry (fields)
//	ids      place, platform id → seq, hour of receipt (two uvarints)
//	due      place, seq → nothing; only while the entry waits
//	journal  place, turn's seq, round, step, part → record (JSON)
//	aliases  place → where it goes on, and how far its numbers moved (JSON)
//	gone     keyed hash of a forgotten id → hour of forgetting (uvarint);
//	         'p', keyed hash of a forgotten person → second of their request (uvarint)
//	states   place → what the conversation is about (JSON)
//	plugins  plugin, 0, place, key → item with its version (JSON)
//	usage    day, 0, person, engine → counters (fields)
//	facts    number → fact with its former texts (JSON)
//	words    origin, term, 0, number of the fact → what ranks it (7 bytes)
//	vectors  origin, number of the fact → model's tag, scale, a byte for each number
//	sketches origin, number of the fact / 60 → of each of these: rest (1 byte), model's tag, 1024 bits
//
// What the bot said carries the ids of those whom it answered, so that it goes
// with them when they are forgotten. What cannot be read is left out, logged once,
// and stays for a check to find; it blocks nothing.
//
// Fields are the encoding of entries and heads: a tag byte, the length as
// uvarint, the bytes; unknown tags are skipped. (JSON took 8 µs for each entry,
// fields take one.) Ids stay known after their entries are gone, so that what a
// platform delivers again is not taken twice, and under the path that they came
// with, also when the place has moved. Keys hold ids of 200 bytes and more as
// their hash.
//
// The words of a fact are stored below its origin: a search begins at the places that
// the asker can see and never meets what was said elsewhere. Words are stemmed by
// the snowball stemmers that bleve's analysers use, without bleve around them;
// what has no spaces between words is found by pairs of letters, and by Han signs.
//
// Vectors are derived: a fact is saved without waiting for one, and gets it in the
// background (see Embedder). A search compares the sketches of
// all facts that can be seen with that of what is looked for, bit by bit, and then
// the vectors of the nearest 700; words and likeness count as the squares of how
// much of the question they answer.
//
// # Writing
//
// One goroutine writes. It drains all batches that wait into one transaction
// and one sync; a batch that fails is taken out and does not fail the others.
// A batch that comes alone does not wait for others: with bbolt's own Batch it would
// wait for 10 ms, or, with a shorter delay, few would share a sync. If the disk is
// full, writes fail with core.ErrFull, and the store finds out by itself when there
// is room again.
package memory
