// Package review sends replies back to the model before anything of them is done: one that
// promises what no action of it does, or one that breaks the limits of length and tone of its
// place. It asks once; what the model then insists on is said.
package review
