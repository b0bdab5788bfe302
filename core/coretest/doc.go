// Package coretest holds what tests of many packages share: conformance suites that every implementation of a
// contract must pass, and small working implementations that replace the large ones. Only tests import it.
package coretest
