// Starts the program that the first argument names with the others, and ends as that program does.
package main

import (
	"os"
	"os/exec"
)

func main() {
	command := exec.Command(os.Args[1], os.Args[2:]...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := command.Run()
	if failed, is := err.(*exec.ExitError); is {
		os.Exit(failed.ExitCode())
	}
	if err != nil {
		os.Stdout.WriteString(err.Error() + "\n")
		os.Exit(99)
	}
}
