import type { KeyObject } from 'node:crypto';
import { MessageChannel, type MessagePort, receiveMessageOnPort, type Worker } from 'node:worker_threads';
import { type Clock, systemClock, type Timer } from '../clock.ts';
import { SpareThreads } from '../threads/spare-threads.ts';
import { type SignText, signingWith } from './sign-text.ts';
import type { SignerData } from './worker.ts';

interface Waiting {
  resolve(signatures: readonly string[]): void;
  reject(error: Error): void;
}

const threads = new SpareThreads('./worker', import.meta.url);

/**
 * Maximum number of texts that are signed on the calling thread: sending so few to another thread takes
 * longer.
 */
const maxTextsHere = 2;

/** Milliseconds without a request after which the thread is released. */
const idleTimeout = 30_000;

/**
 * Signs many texts on another thread, so that the calling thread stays free. Takes the thread at the first
 * use, and releases it when it has been idle for a while. The port to the thread keeps the process alive only
 * while requests wait.
 */
export class BackgroundSigner {
  readonly #key: KeyObject;
  readonly #clock: Clock;
  readonly #waiting: Waiting[] = [];
  #signHere: SignText | undefined;
  #worker: Worker | undefined;
  /** This end of the message channel to the worker. */
  #port: MessagePort | undefined;
  #idleCheck: Timer | undefined;
  #wasUsed = false;

  /** @param key an Ed25519 private key */
  constructor(key: KeyObject, clock = systemClock) {
    this.#key = key;
    this.#clock = clock;
  }

  /** Whether another thread is in use. */
  get hasThread(): boolean {
    return this.#worker !== undefined;
  }

  /**
   * Signs each text (in UTF-8).
   * @returns the signatures as unpadded base64, in the order of the texts
   */
  async sign(texts: readonly string[]): Promise<readonly string[]> {
    if (texts.length <= maxTextsHere) {
      this.#signHere ??= signingWith(this.#key);
      return texts.map(this.#signHere);
    }
    const port = this.#connect();
    this.#wasUsed = true;
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      port.ref();
      port.postMessage(texts);
    });
  }

  /**
   * Takes finished signatures at once. They arrive by themselves at the next turn of the event loop; a caller
   * in the middle of a long turn need not wait for its end.
   */
  poll(): void {
    if (this.#port === undefined || this.#waiting.length === 0) return;
    for (;;) {
      const answer = receiveMessageOnPort(this.#port);
      if (answer === undefined) return;
      this.#answer(this.#port, answer.message as readonly string[]);
    }
  }

  /** Rejects waiting requests and releases the thread. */
  close(): void {
    const worker = this.#worker;
    this.#idleCheck?.cancel();
    if (worker === undefined) return;
    this.#disconnect(this.#port, new Error('the signing thread has ended'));
    threads.release(worker);
  }

  #connect(): MessagePort {
    if (this.#port) return this.#port;
    const { port1: port, port2 } = new MessageChannel();
    const worker = threads.take();
    worker.postMessage({ key: this.#key, port: port2 } satisfies SignerData, [port2]);
    port.on('message', (signatures: readonly string[]) => this.#answer(port, signatures));
    const disconnect = (error: unknown) =>
      this.#disconnect(port, error instanceof Error ? error : new Error(String(error)));
    worker.on('error', disconnect);
    worker.on('exit', () => disconnect(new Error('the signing thread has ended')));
    port.on('close', () => disconnect(new Error('the signing thread has ended')));
    this.#worker = worker;
    this.#port = port;
    this.#checkIdle();
    return port;
  }

  /** Releases the thread if no request came between two checks. */
  #checkIdle(): void {
    this.#wasUsed = false;
    this.#idleCheck = this.#clock.setTimer(idleTimeout, () => {
      if (this.#wasUsed || this.#waiting.length > 0) this.#checkIdle();
      else this.close();
    });
  }

  #answer(port: MessagePort, signatures: readonly string[]): void {
    this.#waiting.shift()?.resolve(signatures);
    if (this.#waiting.length === 0) port.unref();
  }

  /** Rejects waiting requests; the next request starts another thread. */
  #disconnect(port: MessagePort | undefined, error: Error): void {
    if (port !== this.#port) return;
    this.#idleCheck?.cancel();
    this.#port?.close();
    this.#worker = undefined;
    this.#port = undefined;
    for (const { reject } of this.#waiting.splice(0)) reject(error);
  }
}
