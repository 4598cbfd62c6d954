// Holds bytes and checks them for ever, here and in a process that it starts:
// `keeps WRONG READY`. A wrong byte is written to the file WRONG at once; READY is created once
// both run.
package main

import (
	"fmt"
	"os"
	"os/exec"
)

const pages = 1536

func word(place uint64) uint64 {
	place ^= place >> 33
	place *= 0xff51afd7ed558ccd
	return (place ^ place>>33) | 1
}

func look(words []uint64) {
	for page := uint64(0); page < pages; page++ {
		if found := words[page*512]; found != word(page) {
			line := fmt.Sprintf("process %d: page %d has %x\n", os.Getpid(), page, found)
			file, err := os.OpenFile(os.Args[1], os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
			if err == nil {
				file.WriteString(line)
			}
			os.Exit(3)
		}
	}
}

func main() {
	words := make([]uint64, pages*512)
	for page := uint64(0); page < pages; page++ {
		words[page*512] = word(page)
	}
	if len(os.Args) < 4 {
		if err := exec.Command(os.Args[0], os.Args[1], os.Args[2], "again").Start(); err != nil {
			os.Exit(5)
		}
		os.WriteFile(os.Args[2], nil, 0o644)
	}
	go func() {
		for {
			look(words)
		}
	}()
	for {
		look(words)
		exec.Command("/bin/true").Run()
	}
}
