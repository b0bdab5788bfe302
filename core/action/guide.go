package action

import "synthbot/core"

// Guide is the third tier of an action: what it does, when to use it, what to beware of,
// and examples.
func Guide(description, when string, pitfalls []string, examples ...core.Example) core.Examples {
	return core.Examples{
		Description:  description,
		Instructions: core.Instructions{WhenToUse: when, CommonPitfalls: pitfalls},
		Examples:     examples,
	}
}
