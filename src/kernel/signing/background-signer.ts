import { type KeyObject, sign } from 'node:crypto';
import { Worker } from 'node:worker_threads';

interface Waiting {
  resolve(signatures: readonly string[]): void;
  reject(error: Error): void;
}

/** Up to this many texts are signed at once on the calling thread: asking another thread takes longer. */
const fewTexts = 2;

/**
 * Signs many texts at a time on a thread of its own, so that the calling thread is free in the meantime. The thread is
 * started when it is first needed.
 */
export class BackgroundSigner {
  readonly #key: KeyObject;
  readonly #waiting: Waiting[] = [];
  #worker: Worker | undefined;

  /** @param key an Ed25519 private key */
  constructor(key: KeyObject) {
    this.#key = key;
  }

  /** @returns for each text (in UTF-8) its signature as unpadded base64 */
  async sign(texts: readonly string[]): Promise<readonly string[]> {
    if (texts.length <= fewTexts) return texts.map((text) => signature(this.#key, text));
    const worker = this.#thread();
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      worker.ref();
      worker.postMessage(texts);
    });
  }

  async close(): Promise<void> {
    await this.#worker?.terminate();
  }

  #thread(): Worker {
    if (this.#worker) return this.#worker;
    const entry = import.meta.url.endsWith('.ts') ? './worker.ts' : './worker.js';
    const worker = new Worker(new URL(entry, import.meta.url), { workerData: this.#key });
    worker.on('message', (signatures: readonly string[]) => {
      this.#waiting.shift()?.resolve(signatures);
      if (this.#waiting.length === 0) worker.unref();
    });
    worker.on('error', (error) => this.#lose(error instanceof Error ? error : new Error(String(error))));
    worker.on('exit', () => this.#lose(new Error('the thread that signs has ended')));
    this.#worker = worker;
    return worker;
  }

  /** Whoever waits is told; the next request starts another thread. */
  #lose(error: Error): void {
    this.#worker = undefined;
    for (const { reject } of this.#waiting.splice(0)) reject(error);
  }
}

function signature(key: KeyObject, text: string): string {
  return sign(null, Buffer.from(text), key).toString('base64').replace(/=+$/, '');
}
