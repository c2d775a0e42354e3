import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** Resource usage of a process and all its descendants. */
export interface Usage {
  /** CPU time of all threads, user and system. */
  readonly cpuSeconds: number;
  /** Memory in use, in which pages of files that several of the processes have loaded count once. */
  readonly residentBytes: number;
}

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
 * Returns the resident memory of processes. Each page of an executable or a library is in memory once, however many
 * processes use it, so for each file the process counts that has most of it in memory.
 */
function residentBytesOf(pids: readonly number[]): number {
  let kilobytes = 0;
  const ofFiles = new Map<string, number>();
  for (const pid of pids) {
    const ofProcess = new Map<string, number>();
    let file: string | undefined;
    for (const line of (tryTo(() => readFileSync(`/proc/${pid}/smaps`, 'latin1')) ?? '').split('\n')) {
      const mapping = /^[0-9a-f]+-[0-9a-f]+ \S+ \S+ \S+ \S+ *(.*)$/.exec(line);
      if (mapping) file = mapping[1]!.startsWith('/') ? mapping[1] : undefined;
      if (!line.startsWith('Rss:')) continue;
      const resident = Number.parseInt(line.slice('Rss:'.length), 10);
      if (file === undefined) kilobytes += resident;
      else ofProcess.set(file, (ofProcess.get(file) ?? 0) + resident);
    }
    for (const [name, resident] of ofProcess) ofFiles.set(name, Math.max(ofFiles.get(name) ?? 0, resident));
  }
  for (const resident of ofFiles.values()) kilobytes += resident;
  return kilobytes * 1_024;
}

function allProcesses(): Map<number, Process> | undefined {
  const processes = new Map<number, Process>();
  for (const pid of pidsOfMachine()) {
    const text = tryTo(() => readFileSync(`/proc/${pid}/stat`, 'latin1'));
    if (text === undefined) continue;
    // The fields are counted from behind the process name, which may contain any character: the first one is
    // field 3 of proc(5).
    const fields = text
      .slice(text.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number);
    const [parent = 0, user = 0, system = 0] = [fields[1], fields[11], fields[12]];
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

/** A process may end while it is read, and processes of other users cannot be read. */
function tryTo<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
