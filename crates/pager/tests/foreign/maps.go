// Fills maps in several goroutines while the garbage collector runs, and checks every byte.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
)

const keys = 40_000

func mix(value uint64) uint64 {
	value ^= value >> 33
	value *= 0xff51afd7ed558ccd
	return value ^ value>>33
}

func fill(routine uint64) {
	values := map[uint64][]byte{}
	for place := uint64(0); place < keys; place++ {
		key := mix(place*4 + routine)
		value := make([]byte, 64+key%64)
		for at := range value {
			value[at] = byte(key + uint64(at))
		}
		values[key] = value
		if place%3 == 2 {
			delete(values, mix(place/2*4+routine))
		}
	}
	for key, value := range values {
		for at := range value {
			if value[at] != byte(key+uint64(at)) {
				fmt.Fprintf(os.Stderr, "byte %d of %x is wrong\n", at, key)
				os.Exit(3)
			}
		}
	}
}

func main() {
	var group sync.WaitGroup
	for routine := range uint64(4) {
		group.Add(1)
		go func() {
			defer group.Done()
			fill(routine)
		}()
	}
	group.Wait()
	said, err := exec.Command("echo", "clean").Output()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Print(string(said))
}
