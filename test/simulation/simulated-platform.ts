import crypto, { type KeyObject, type VerifyKeyObjectInput } from 'node:crypto';
import { EventEmitter } from 'node:events';
import fs from 'node:fs';
import fsPromises from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import workers from 'node:worker_threads';
import type { SqliteConnection } from '../../src/kernel/database/sqlite/connection.ts';
import { OperationRunner } from '../../src/kernel/database/sqlite/operation-runner.ts';
import type {
  FromWorker,
  Request,
  ToWorker,
  WorkerOptions,
} from '../../src/kernel/database/sqlite/protocol.ts';
import { loadedSodium, type Sodium, signingWith } from '../../src/kernel/signing/sign-text.ts';
import { takeConnection } from './connections.ts';
import type { Scheduler } from './scheduler.ts';

/** The disk of a process: database operations take time, and a crashed process does none. */
export interface Disk {
  /** Whether the process runs. */
  readonly isAlive: boolean;
  /** Milliseconds until an operation runs. */
  delay(): number;
  /** Called before and after each write. @returns whether the process still runs */
  step(): boolean;
}

/** The process that has opened a database last, by path. */
export const disks = new Map<string, Disk>();

let scheduler: Scheduler | undefined;

/** Runs threads, zero-length timers and file reads of this process in simulated time. */
export function useScheduler(simulated: Scheduler): void {
  scheduler = simulated;
}

const currentScheduler = () => {
  if (!scheduler) throw new Error('no simulation runs');
  return scheduler;
};

/**
 * Stands for the worker thread of a database, but works on the calling thread: runs requests in order, each after the
 * delay of the disk.
 */
class DatabaseThread {
  readonly #answer: (message: FromWorker) => void;
  #disk: Disk | undefined;
  #isWriting = false;
  #connection: SqliteConnection | undefined;
  #runner: OperationRunner | undefined;
  #queue: (Request | 'close')[] = [];
  #isBusy = false;
  #isClosed = false;

  constructor(answer: (message: FromWorker) => void) {
    this.#answer = answer;
  }

  /** Whether this thread no longer uses its connection. */
  get hasEnded(): boolean {
    return this.#isClosed || this.#disk?.isAlive === false;
  }

  take(message: ToWorker): void {
    if (typeof message === 'object' && 'open' in message) {
      this.#open(message.open);
      return;
    }
    this.#queue.push(message);
    if (!this.#isBusy) this.#next();
  }

  #open({ file, access }: WorkerOptions): void {
    this.#disk = disks.get(file.path);
    this.#isWriting = access === 'writing';
    this.#connection = takeConnection(file, access, this);
    this.#runner = new OperationRunner(this.#connection, access);
  }

  #next(): void {
    const message = this.#queue.shift();
    this.#isBusy = message !== undefined;
    if (message === undefined) return;
    currentScheduler().after(this.#disk?.delay() ?? 0, () => this.#do(message));
  }

  #do(message: Request | 'close'): void {
    if (message === 'close') {
      this.#isClosed = true;
      this.#isBusy = false;
      this.#answer('closed');
      return;
    }
    // A crash before the commit loses the transaction, and a crash after the commit loses the answer.
    const results = this.#isProcessAlive() ? this.#runner!.run(message.operations) : [];
    if (this.#isProcessAlive()) {
      this.#answer({ id: message.id, results });
      this.#next();
    }
  }

  #isProcessAlive(): boolean {
    return !this.#isWriting || !this.#disk || this.#disk.step();
  }
}

/** Stands for `MessagePort`. */
class SimulatedPort extends EventEmitter {
  other: SimulatedPort | undefined;

  postMessage(message: unknown): void {
    currentScheduler().immediately(() => this.other?.emit('message', message));
  }

  ref(): void {}

  unref(): void {}

  close(): void {}
}

/** Stands for `MessageChannel`. */
class SimulatedChannel {
  readonly port1 = new SimulatedPort();
  readonly port2 = new SimulatedPort();

  constructor() {
    this.port1.other = this.port2;
    this.port2.other = this.port1;
  }
}

/** Stands for `Worker`: the threads of databases and of signing. */
class SimulatedWorker extends EventEmitter {
  readonly #take: (message: never) => void;

  constructor(url: URL) {
    super();
    if (url.pathname.endsWith('/database/sqlite/worker.ts')) {
      const thread = new DatabaseThread((message) => void this.emit('message', message));
      this.#take = (message: ToWorker) => thread.take(message);
    } else if (url.pathname.endsWith('/signing/worker.ts')) {
      this.#take = ({ key, port }: { key: KeyObject; port: SimulatedPort }) => {
        const sign = signingWith(key);
        port.on('message', (texts: readonly string[]) => port.postMessage(texts.map(sign)));
      };
    } else throw new Error(`simulations have no stand-in for the worker ${url.pathname}`);
  }

  postMessage(message: unknown): void {
    this.#take(message as never);
  }

  ref(): void {}

  unref(): void {}

  async terminate(): Promise<number> {
    this.emit('exit', 0);
    return 0;
  }
}

const publicKeys = new WeakMap<KeyObject, string>();

/** Returns the public half of a key, in unpadded base64url. */
function publicKeyOf(key: KeyObject): string {
  const known = publicKeys.get(key);
  if (known !== undefined) return known;
  const { x = '' } = (key.type === 'private' ? crypto.createPublicKey(key) : key).export({ format: 'jwk' });
  publicKeys.set(key, x);
  return x;
}

/**
 * Replaces Ed25519 signatures, which would take a sixth of the run time, by a SHA-512 hash of key and text of the same
 * length. A hash is enough, because simulated servers forge no signatures.
 */
function simulatedSign(_algorithm: null | undefined, data: Uint8Array, key: unknown): Buffer {
  return signatureBy(publicKeyOf(key as KeyObject), data);
}

const signatureBy = (publicKey: string, data: Uint8Array) =>
  crypto.createHash('sha512').update(publicKey).update(data).digest();

/** The same signature through libsodium's interface, whose secret keys end in the public keys. */
const simulatedLibrarySign: Sodium['crypto_sign_detached'] = (signature, data, secretKey) =>
  signature.set(signatureBy(Buffer.from(secretKey.subarray(32)).toString('base64url'), data));

/** Verifies on this thread, and calls the callback, if one is given, in simulated time. */
function simulatedVerify(...given: unknown[]): boolean | undefined {
  const [, data, key, signature, callback] = given as [
    string | null,
    Buffer,
    VerifyKeyObjectInput,
    Uint8Array,
    ((error: Error | null, isValid: boolean) => void)?,
  ];
  const ofKey = 'type' in key ? (key as unknown as KeyObject) : (key.key as KeyObject);
  const isValid = simulatedSign(null, data, ofKey).equals(signature);
  if (!callback) return isValid;
  currentScheduler().immediately(() => callback(null, isValid));
  return undefined;
}

/**
 * Replaces the platform's threads, crypto and timers, so that a run depends on nothing but its seed. Affects
 * the whole process; call it before any code of the server is loaded.
 */
export function simulatePlatform(): void {
  Object.assign(workers, {
    Worker: SimulatedWorker,
    MessageChannel: SimulatedChannel,
    // Messages arrive only between turns of the event loop.
    receiveMessageOnPort: () => undefined,
  });
  Object.assign(crypto, { sign: simulatedSign, verify: simulatedVerify });
  Object.assign(loadedSodium() ?? {}, { crypto_sign_detached: simulatedLibrarySign });
  Object.assign(fsPromises, {
    readFile: async (path: string, options: BufferEncoding) => fs.readFileSync(path, options),
  });
  syncBuiltinESMExports();
  const immediate = (callback: (...values: unknown[]) => void, ...values: unknown[]) =>
    currentScheduler().immediately(() => callback(...values));
  globalThis.setImmediate = immediate as unknown as typeof setImmediate;
}
