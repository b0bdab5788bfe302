// Package plan reads what a model answered into a Plan: a tolerant reader for
// foreign text. It knows the format of the reply and nothing of the catalogue:
// whether an action exists and whether its payload is right, package action
// says.
//
// # What is read
//
// One JSON object with the keys response, intent, confidence, actions, context,
// suggestions and metadata; a bare array of actions; one bare action
// {"type", "payload"}; {"action", "action_input"}; a tool call
// {"name", "arguments"}; native tool calls; each of them also inside of a fenced
// block, behind a block of reasoning, or with prose around it. Several bare
// actions one after the other are a list. params is read as payload, names of
// keys may be written in snake case, a number may be a string. What a model
// thinks is taken out of all texts of a plan, too.
//
// # What is repaired
//
// Text that clearly was meant to be JSON is repaired, and the plan is marked Repaired. So is
// a plan of an answer that was cut, one that names a key twice, and one of several plans with
// prose in between. Of such a plan only messages may run. It never holds an action whose name
// is not literally in the text.
//
// # What is refused
//
// An empty answer, prose without any JSON, a plan with neither response nor
// actions, a step without a type, a step whose conditions cannot be read, and
// everything of a wrong type: each is one Fault. Text beyond MaxText, more than
// 64 levels of nesting and more than 32 steps are not read at all.
package plan
