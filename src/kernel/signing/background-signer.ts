import type { KeyObject } from 'node:crypto';
import { MessageChannel, type MessagePort, receiveMessageOnPort, type Worker } from 'node:worker_threads';
import { SpareThreads } from '../threads/spare-threads.ts';
import { type SignText, signingWith } from './sign-text.ts';
import type { SignerData } from './worker.ts';

interface Waiting {
  resolve(signatures: readonly string[]): void;
  reject(error: Error): void;
}

const threads = new SpareThreads('./worker', import.meta.url);

/** Up to this many texts are signed at once on the calling thread: asking another thread takes longer. */
const fewTexts = 2;

/**
 * Signs many texts at a time on a thread of its own, so that the calling thread is free in the meantime. The thread is
 * taken when it is first needed; it is this signer's port that holds the process, while somebody waits.
 */
export class BackgroundSigner {
  readonly #key: KeyObject;
  readonly #waiting: Waiting[] = [];
  #signHere: SignText | undefined;
  #worker: Worker | undefined;
  /** This end of the channel to the worker. */
  #port: MessagePort | undefined;

  /** @param key an Ed25519 private key */
  constructor(key: KeyObject) {
    this.#key = key;
  }

  /** @returns for each text (in UTF-8) its signature as unpadded base64 */
  async sign(texts: readonly string[]): Promise<readonly string[]> {
    if (texts.length <= fewTexts) {
      this.#signHere ??= signingWith(this.#key);
      return texts.map(this.#signHere);
    }
    const port = this.#thread();
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      port.ref();
      port.postMessage(texts);
    });
  }

  /**
   * Takes the answers that are there already. They come by themselves at the next turn of the event loop; who is in
   * the middle of a long one need not wait for its end.
   */
  poll(): void {
    if (this.#port === undefined || this.#waiting.length === 0) return;
    for (;;) {
      const answer = receiveMessageOnPort(this.#port);
      if (answer === undefined) return;
      this.#answer(this.#port, answer.message as readonly string[]);
    }
  }

  /** Whoever waits is told that it is closed. */
  close(): void {
    const worker = this.#worker;
    if (worker === undefined) return;
    this.#lose(this.#port, new Error('the thread that signs has ended'));
    threads.giveBack(worker);
  }

  #thread(): MessagePort {
    if (this.#port) return this.#port;
    const { port1: port, port2 } = new MessageChannel();
    const worker = threads.take();
    worker.postMessage({ key: this.#key, port: port2 } satisfies SignerData, [port2]);
    port.on('message', (signatures: readonly string[]) => this.#answer(port, signatures));
    const lose = (error: unknown) =>
      this.#lose(port, error instanceof Error ? error : new Error(String(error)));
    worker.on('error', lose);
    worker.on('exit', () => lose(new Error('the thread that signs has ended')));
    port.on('close', () => lose(new Error('the thread that signs has ended')));
    this.#worker = worker;
    this.#port = port;
    return port;
  }

  #answer(port: MessagePort, signatures: readonly string[]): void {
    this.#waiting.shift()?.resolve(signatures);
    if (this.#waiting.length === 0) port.unref();
  }

  /** Whoever waits is told; the next request starts another thread. */
  #lose(port: MessagePort | undefined, error: Error): void {
    if (port !== this.#port) return;
    this.#port?.close();
    this.#worker = undefined;
    this.#port = undefined;
    for (const { reject } of this.#waiting.splice(0)) reject(error);
  }
}
