// Package action holds the catalogue of actions, and executes plans. It knows nothing of
// models and prompts: package plan reads what a model says, package turn decides when
// anything happens.
//
// The package is larger than most: what is checked, why something must be confirmed, and
// what is done once more after a crash are rules about the same steps.
//
// # The catalogue
//
// Build asks all plugins for their actions, checks them, and returns a Snapshot, which never
// changes. It reports all errors at once: a brief that is empty or not under 100 characters,
// names that are taken, dependencies that nobody offers or that form a circle. Names and
// similes match in lower case, without '_', '-', '.' and spaces. Lint also compiles the
// schemas, and refuses defaults and examples that they refuse: tests call it for the program's
// own actions, plugins for those of others. A Schema in the older form of definitions is
// converted; package schema has the rules of today's.
//
// # Permissions
//
// An action declares who may cause it; a Policy wins over that. The rights of a turn are
// those of the people who caused it, of several people those that all of them have; what a
// model says does not matter. A payload's interface_path must be the place of the turn or
// lie below it, unless a Grant leads there; nothing leaves a private place in spite of any
// grant. What must be confirmed runs for one person alone.
//
// All texts of a prompt can influence a plan. Provenance has the rules by which a step must
// be confirmed because of what others wrote, and core.Effect what an action must declare for
// them. The turn journals it with the plan, and a step that waits keeps it in its Held.
//
// # Check
//
// Check corrects what is certain: canonical names, the generic "message", the place if none
// is given, response as the first message (dropped if a message repeats it), stray keys that
// repeat a message, the person concerned if nobody is named, 5.0 for 5, defaults. Everything
// else is a fault. Of a repaired plan only messages are left.
//
// # Execution
//
// Steps run one after the other: highest priority first, ties as written, nothing before
// what it depends on. Each goes through
//
//	permission → conditions → dependencies → form → Job.Guard → Check → cache →
//	rate limit → confirmation → busy → started, on disk → Do →
//	output schema → journal
//
// and is skipped by the first of these that refuses. It waits for a confirmation if the
// action, the plan or Job.Read asks for one; after that, all before the rate limit is asked
// again. Do has a time limit for each try. Errors of the kind temporary, and busy ones that
// say when, are tried again with growing, jittered pauses as often as the action declares. A
// try that ran out of time, like a step that a crash cut short, may have happened: it is
// repeated only if the action is idempotent, and else stays unknown. A panic is an error.
//
// A step that was skipped or failed is replaced by its fallback; one that is unknown is not.
// Independent steps never stop each other. What a result asks for (Result.Next) is checked
// like a plan, at most 4 deep, and is never an action that led to it. The steps of a plan that
// name one unit all succeed, or what was done of them is undone, the last first. Nothing inside
// of a unit can be confirmed.
//
// NONE, CONTINUE and IGNORE run no code: Execute reports them as done, and the turn acts on
// them. CONTINUE is skipped after MaxContinue in a row.
//
// A step that must be confirmed is journalled as pending, with a Held that has all it needs,
// and reported with its question; what depends on it waits with it. Resume continues it, or
// skips it and what depends on it.
//
// # Forms
//
// A required value of a payload that the plan leaves open, with a null or with its name in
// slotsRequired, is asked for: texts, numbers, booleans and enumerations, of one user, not of
// messages and not inside of a unit. The step waits like one that must be confirmed, its Held
// with the Form's question. Each answer is judged by the schema. The third that does not fit ends
// the form, and so does its time. When all values are there, the step goes through everything
// above, and may have to be confirmed. Of several forms one is filled in at a time.
//
// # Conditions
//
// A step runs when all of its conditions hold at the time when its turn comes.
// A field is a dotted path. It begins with
//
//	context              what the plan itself says (topic, entities, slotsFilled, slotsRequired)
//	conversation_state   what was known before; state is the same
//	message              id, text, time, voice, locale, addressed, private, path, attachments (a count)
//	author               id, name, tag, bot, rank (member, moderator, admin, bot); missing if several
//	                     people caused the turn
//	results.NAME         the output of an action that succeeded earlier in this turn, in any round; the
//	                     last one of that name. A key that the schema of the output rules out is a fault
//
// or, where it begins with none of these, with an entity or a slot: of the plan's
// context, else of what was known before (account.balance); one that neither has
// is a fault, unless the operator is exists. It goes on with keys of objects, compared exactly, or indexes of
// arrays, from 0. Where it leads to nothing the field is missing; a value of null
// is missing too.
//
//	eq        same type and same value: numbers by value (1 is 1.0), strings byte
//	          by byte, arrays in order, objects in any order. A missing field
//	          equals null only. A string never equals a number.
//	neq       exactly when eq does not hold; so it holds for a missing field,
//	          unless the value is null
//	gt gte    both numbers: by value. Both strings: as times where both are RFC
//	lt lte    3339, else byte by byte. Anything else, and a missing field: does
//	          not hold.
//	contains  a string, or a number as it is written, contains the string or number;
//	          an array an element that equals the
//	          value; an object the key. Anything else: does not hold.
//	exists    the field is not missing; with the value false: it is missing. Any
//	          other value, or none, counts as true.
//
// Numbers are exact; those beyond 400 digits or an exponent of three are equal
// only when written alike, and in no order.
package action
