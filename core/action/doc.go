// Package action holds the catalogue of actions, and carries plans out.
package action
