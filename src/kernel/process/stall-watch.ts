import { url as debuggerUrl } from 'node:inspector';
import { Worker } from 'node:worker_threads';

/** Code that has blocked the event loop. */
export interface Stall {
  /** URLs and lines of the calls, the innermost first: `file:///…/file.ts:12`. */
  readonly frames: readonly string[];
}

/** Times in milliseconds. A heartbeat is a number that the main thread raises. */
const defaultTimes = {
  /** Interval of the heartbeats. */
  beatInterval: 250,
  /** Time without a heartbeat after which the watcher looks up the running code. */
  reportAfter: 2_000,
  /** Time without a heartbeat after which the watcher writes that code to stderr, since the log cannot be written. */
  writeAfter: 10_000,
  /** Time without a heartbeat after which the watcher ends the process if the running code is that of a module. */
  endAfter: 60_000,
};

/**
 * The source of a worker thread. It finds the running code with the debugger, which also works in an endless loop and
 * pauses the process for some milliseconds. The time without a heartbeat is added up in small steps by this thread, so
 * that a process that was suspended as a whole does not count as stuck.
 */
const watcher = `
const { parentPort, workerData: { beats, beatInterval, reportAfter, writeAfter, endAfter, moduleFiles } } = require('node:worker_threads');
const { writeSync } = require('node:fs');
const { Session } = require('node:inspector');
let last = -1;
let turn = performance.now();
let milliseconds = 0;
let frames = undefined;
let isWritten = false;
setInterval(() => {
  const passed = Math.min(performance.now() - turn, 2 * beatInterval);
  turn = performance.now();
  const now = Atomics.load(beats, 0);
  if (now !== last) {
    last = now;
    milliseconds = 0;
    frames = undefined;
    isWritten = false;
    return;
  }
  milliseconds += passed;
  if (milliseconds >= reportAfter && frames === undefined) lookUp(report);
  if (milliseconds >= writeAfter && frames?.length > 0 && !isWritten) {
    isWritten = true;
    write('The process is stuck in this code');
  }
  if (milliseconds >= endAfter) {
    // Looks again after a while: a pause that is requested while the process is already paused is lost.
    milliseconds = writeAfter;
    lookUp(endIfInModule);
  }
}, beatInterval);
function report(session, callFrameId, resume) {
  resume();
  parentPort.postMessage({ frames });
}
function write(msg) {
  writeSync(2, JSON.stringify({ level: 'error', time: new Date().toISOString(), msg, frames }) + '\\n');
}
function endIfInModule(session, callFrameId, resume) {
  if (Atomics.load(beats, 1) !== 0 || !frames.some((frame) => moduleFiles.some((file) => frame.startsWith(file)))) return resume();
  write('The process ends, since it is stuck in the code of a module');
  process.kill(process.pid, 'SIGKILL');
  // The kernel ignores this signal for the first process of a container. Therefore that process ends itself.
  session.post('Debugger.evaluateOnCallFrame', { callFrameId, expression: 'globalThis.process.reallyExit(137)' }, resume);
}
function lookUp(found) {
  frames = [];
  const session = new Session();
  const urls = new Map();
  session.connectToMainThread();
  session.on('Debugger.scriptParsed', ({ params }) => urls.set(params.scriptId, params.url));
  session.on('Debugger.paused', ({ params }) => {
    frames = params.callFrames.map(({ location }) => urls.get(location.scriptId) + ':' + (location.lineNumber + 1));
    found(session, params.callFrames[0].callFrameId, () => session.post('Debugger.resume', () => session.disconnect()));
  });
  session.post('Debugger.enable');
  session.post('Debugger.pause');
}
`;

/**
 * Finds the code that blocks the process for seconds: no code of the main thread runs during an endless loop. Ends the
 * process if it is stuck in the code of a module, so that a service manager restarts it: such code cannot be interrupted
 * without losing the promises of all other work.
 */
export class StallWatch {
  readonly #times: typeof defaultTimes;
  #worker: Worker | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(times = defaultTimes) {
    this.#times = times;
  }

  /**
   * Begins to watch this process.
   * @param report receives each stall once it is over
   * @param moduleFiles URLs and paths of the files and folders of modules
   */
  start(report: (stall: Stall) => void, moduleFiles: readonly string[] = []): void {
    // Index 0: the number of heartbeats. Index 1: 1 while a debugger may be attached, whose breakpoints stop the process.
    const beats = new Int32Array(new SharedArrayBuffer(8));
    const beat = () => {
      Atomics.store(beats, 1, debuggerUrl() === undefined ? 0 : 1);
      Atomics.add(beats, 0, 1);
    };
    beat();
    this.#timer = setInterval(beat, this.#times.beatInterval).unref();
    this.#worker = new Worker(watcher, {
      eval: true,
      execArgv: [],
      workerData: { beats, moduleFiles, ...this.#times },
    });
    this.#worker.on('message', report);
    this.#worker.on('error', () => this.stop());
    this.#worker.unref();
  }

  stop(): void {
    clearInterval(this.#timer);
    void this.#worker?.terminate();
  }
}
