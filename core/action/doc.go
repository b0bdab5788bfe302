// Package action holds the catalogue of actions, and executes plans. It knows nothing of models and prompts: package
// plan reads a model's answer, package turn decides when a plan is executed.
//
// The package is larger than most, because checks, confirmations and the recovery from a crash are rules about the
// same steps.
//
// # The catalogue
//
// Build asks all plugins for their actions, checks them, and returns a Snapshot, which never changes. It reports all
// errors at once: a brief that is empty or not under 100 characters, names that are taken, dependencies that nobody
// offers or that form a circle. Names and similes match in lower case, without '_', '-', '.' and spaces. Lint also
// compiles the schemas, and refuses defaults and examples that they refuse: tests call it for the program's own
// actions, plugins for those of others. A Schema in the older form of definitions is converted; package schema has
// the rules of the current one.
//
// # Permissions
//
// An action declares who may cause it; a Policy overrides that. A turn has the rights of the people who caused it;
// of several people, the rights that all of them have. What a model says does not matter. A payload's interface_path
// must be the place of the turn or lie below it, unless a Grant allows another one; no grant applies in a private
// place. A step that must be confirmed runs only in a turn that one person caused.
//
// All texts of a prompt can influence a plan. Provenance has the rules by which a step must be confirmed because of
// what others wrote, and core.Effect what an action must declare for them. The turn journals it with the plan, and a
// step that waits keeps it in its Held.
//
// # Check
//
// Check corrects what is certain: canonical names, the generic "message", the place if none is given, response as
// the first message (dropped if a message repeats it), unknown keys that repeat a message, the person concerned if
// nobody is named, 5.0 for 5, defaults. Everything else is a fault. Only messages of a repaired plan may run.
//
// # Execution
//
// Steps run one after the other: highest priority first, ties as written, nothing before what it depends on. Each
// goes through
//
//	permission → conditions → dependencies → form → Job.Guard → Check → cache →
//	rate limit → confirmation → busy → started, on disk → Do →
//	output schema → journal
//
// and is skipped if one of these refuses it. It waits for a confirmation if the action, the plan or Job.Read
// requires one; after that, everything before the rate limit is checked again. Each try of Do has a time limit.
// After a temporary error, or a busy one that says when to try again, it is tried again with growing, jittered
// pauses as often as the action declares. A try that ran out of time, like a step that a crash cut short, may have
// worked: it is repeated only if the action is idempotent; else its outcome stays unknown. A panic is an error.
//
// A step that was skipped or failed is replaced by its fallback; one of unknown outcome is not. Independent steps
// never stop each other. The steps that a result asks for (Result.Next) are checked like a plan, at most 4 deep, and
// none may be an action that led to it. The steps of a plan that name the same unit all succeed, or those that were
// done are undone, the last first. No step of a unit can wait for a confirmation.
//
// NONE, CONTINUE and IGNORE run no code: Execute reports them as done, and the turn acts on them. CONTINUE is
// skipped after MaxContinue in a row.
//
// A step that must be confirmed is journalled as pending, with a Held that has all it needs, and reported with its
// question. The steps that depend on it wait with it. Resume continues or skips all of them.
//
// # Forms
//
// If a plan leaves a required value of a payload open, with a null or with its name in slotsRequired, the user is asked
// for it: texts, numbers, booleans and enumerations, in a turn that one user caused, not for messages and not inside of
// a unit. The step waits like one that must be confirmed; its Held has the question as a Form. The schema judges each
// answer. The third one that does not fit ends the form, and so does its time limit. With all values, the step goes
// through everything above, and may have to be confirmed. Of several forms, one is filled in at a time.
//
// # Conditions
//
// A step runs only if all of its conditions hold just before it begins. A field is a dotted path. It begins with
//
//	context              of the plan itself (topic, entities, slotsFilled, slotsRequired)
//	conversation_state   the same before the turn; state is another name for it
//	message              id, text, time, voice, locale, addressed, private, path, attachments (a count)
//	author               id, name, tag, bot, rank (member, moderator, admin, bot); missing if several
//	                     people caused the turn
//	results.NAME         the output of an action that succeeded earlier in this turn, in any round; the
//	                     last one of that name. A key that the schema of the output rules out is a fault
//
// or else with an entity or a slot of the plan's context or, if that has none of the name, of the conversation_state
// (account.balance). A name that neither has is a fault, unless the operator is exists. The path goes on with keys of
// objects, compared exactly, or indexes of arrays, from 0. If it leads to nothing or to null, the field is missing.
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
// Numbers are exact; those beyond 400 digits or an exponent of three are equal only when written alike, and in no
// order.
package action
