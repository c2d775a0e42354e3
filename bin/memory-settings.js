/**
 * Settings of V8, by name:
 * - half of the young generation of the heap, in MiB: V8 would choose a size for the memory of the machine, up to 32, and
 *   rarely give it back;
 * - how much the old generation may grow until it is collected, in percent of what was in use after the last collection.
 */
const heap = { '--max-semi-space-size': 16, '--heap-growing-percent': 40 };

/** Number of pools from which threads of the C library take memory; by default there are eight for each processor. */
const arenas = '2';

/**
 * Replaces this process by one with settings that bound its memory: V8 reads them only when it starts. Settings that the
 * operator has made stay. Does nothing where Node cannot replace a process.
 */
export function restartWithMemorySettings() {
  const given = [...process.execArgv, process.env['NODE_OPTIONS'] ?? ''].join(' ');
  if (!process.execve || Object.keys(heap).some((name) => given.includes(name))) return;
  const [program, ...parameters] = process.argv;
  const settings = Object.entries(heap).map(([name, value]) => `${name}=${value}`);
  process.execve(process.execPath, [program, ...process.execArgv, ...settings, ...parameters], {
    MALLOC_ARENA_MAX: arenas,
    ...process.env,
  });
}
