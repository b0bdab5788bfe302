// Package coretest holds what tests of all rooms share: conformance suites that
// every implementation of a contract must pass, and small true
// implementations to replace the large ones. Only tests import it.
package coretest
