import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** Resource usage of a process and all its descendants. */
export interface Usage {
  /** CPU time of all threads, user and system. */
  readonly cpuSeconds: number;
  /** Resident memory. A file that several of the processes have loaded counts once. */
  readonly residentBytes: number;
}

/** Clock ticks per second of the times in `/proc/PID/stat` (USER_HZ). */
const ticksPerSecond = 100;

interface Process {
  readonly parent: number;
  readonly cpuSeconds: number;
}

/**
 * Reads the usage of these processes and their descendants from /proc; `undefined` where there is no /proc.
 */
export function usageOf(pids: readonly number[]): Usage | undefined {
  const processes = allProcesses();
  if (!processes) return undefined;
  const isIncluded = (pid: number): boolean =>
    pids.includes(pid) || (processes.has(pid) && isIncluded(processes.get(pid)?.parent ?? 0));
  let cpuSeconds = 0;
  const included = [...processes.keys()].filter(isIncluded);
  for (const pid of included) cpuSeconds += processes.get(pid)?.cpuSeconds ?? 0;
  return { cpuSeconds, residentBytes: residentBytesOf(included) };
}

/**
 * Returns the resident memory of processes, in bytes. Processes share the memory of an executable or a library, so each
 * such file counts once: with the largest part of it that one process has in memory.
 */
function residentBytesOf(pids: readonly number[]): number {
  let kilobytes = 0;
  const kilobytesByFile = new Map<string, number>();
  for (const pid of pids) {
    const inProcess = new Map<string, number>();
    let file: string | undefined;
    for (const line of (tryTo(() => readFileSync(`/proc/${pid}/smaps`, 'latin1')) ?? '').split('\n')) {
      const mapping = /^[0-9a-f]+-[0-9a-f]+ \S+ \S+ \S+ \S+ *(.*)$/.exec(line);
      if (mapping) file = mapping[1]!.startsWith('/') ? mapping[1] : undefined;
      if (!line.startsWith('Rss:')) continue;
      const resident = Number.parseInt(line.slice('Rss:'.length), 10);
      if (file === undefined) kilobytes += resident;
      else inProcess.set(file, (inProcess.get(file) ?? 0) + resident);
    }
    for (const [name, resident] of inProcess)
      kilobytesByFile.set(name, Math.max(kilobytesByFile.get(name) ?? 0, resident));
  }
  for (const resident of kilobytesByFile.values()) kilobytes += resident;
  return kilobytes * 1_024;
}

/** Reads all processes of the machine, by their ids; `undefined` where there is no /proc. */
function allProcesses(): Map<number, Process> | undefined {
  const processes = new Map<number, Process>();
  for (const pid of pidsOfMachine()) {
    const text = tryTo(() => readFileSync(`/proc/${pid}/stat`, 'latin1'));
    if (text === undefined) continue;
    // The name of the process, field 2 of proc(5), may contain any character: the text is split after it, so that
    // `fields[0]` is field 3.
    const fields = text
      .slice(text.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number);
    const parent = fields[1] ?? 0;
    const user = fields[11] ?? 0;
    const system = fields[12] ?? 0;
    processes.set(pid, { parent, cpuSeconds: (user + system) / ticksPerSecond });
  }
  return processes.size > 0 ? processes : undefined;
}

/** Finds the process that listens on a TCP port of this machine. */
export function pidListeningOn(port: number): number | undefined {
  const hexPort = port.toString(16).toUpperCase().padStart(4, '0');
  const table = ['/proc/net/tcp', '/proc/net/tcp6'].flatMap((file) =>
    (tryTo(() => readFileSync(file, 'latin1')) ?? '').split('\n').map((line) => line.trim().split(/\s+/)),
  );
  const listening = '0A';
  const entry = table.find((fields) => fields[1]?.endsWith(`:${hexPort}`) && fields[3] === listening);
  const socket = `socket:[${entry?.[9]}]`;
  return pidsOfMachine().find((pid) =>
    (tryTo(() => readdirSync(`/proc/${pid}/fd`)) ?? []).some(
      (descriptor) => tryTo(() => readlinkSync(`/proc/${pid}/fd/${descriptor}`)) === socket,
    ),
  );
}

function pidsOfMachine(): number[] {
  return (tryTo(() => readdirSync('/proc')) ?? []).map(Number).filter((pid) => pid > 0);
}

/** Returns the result of `read`; `undefined` when it fails: the process has ended, or belongs to another user. */
function tryTo<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
