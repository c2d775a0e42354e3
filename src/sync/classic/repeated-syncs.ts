import { LRUCache } from 'lru-cache';
import type { Clock } from '../../kernel/clock.ts';
import type { Sync, SyncAnswer, SyncRequest } from './sync.ts';

/** A request of a device, with what tells it from its others. */
export interface RepeatableRequest extends SyncRequest {
  /** Identifies the access token: a device that logs in again is another, though it has the same name. */
  readonly tokenId: number | undefined;
  /** The filter as it was asked for: its id or its text. */
  readonly filterText: string | undefined;
  readonly client: SyncRequest['client'] & {
    /** Whether the client's connection took the whole answer; looked at for first syncs only. */
    readonly wasSent: Promise<boolean>;
  };
}

/** Characters of all answers that are remembered, with their keys, and of one: a larger one is made again. */
const [maxCharacters, longestAnswer] = [32 * 1024 * 1024, 8 * 1024 * 1024];

interface Running {
  readonly request: RepeatableRequest;
  readonly answer: Promise<SyncAnswer>;
}

/**
 * Syncs that clients ask for more than once: they lose their connection before the answer arrives, or give up waiting
 * for it, and ask again. Whoever asks the same at the same time gets the same answer, and for a while afterwards too
 * (`caches.sync_response_cache_duration`), so that the work of a large sync is not done over and over.
 */
export class RepeatedSyncs {
  readonly #sync: Pick<Sync, 'quietAnswer' | 'sync'>;
  readonly #answers: LRUCache<string, string> | undefined;
  readonly #running = new Map<string, Running>();

  /** @param duration milliseconds for which answers are remembered; 0: not at all */
  constructor(sync: Pick<Sync, 'quietAnswer' | 'sync'>, clock: Clock, duration: number) {
    this.#sync = sync;
    if (duration === 0) return;
    this.#answers = new LRUCache({
      maxSize: maxCharacters,
      maxEntrySize: longestAnswer,
      sizeCalculation: (text, key) => text.length + key.length,
      ttl: duration,
      ttlResolution: 0,
      // To the library an entry made at time 0 has no age.
      perf: { now: () => clock.monotonic() + 1 },
    });
  }

  /** @returns the answer as JSON text. @throws MatrixError M_INVALID_PARAM for a foreign token */
  sync(request: RepeatableRequest): string | Promise<string> {
    return this.#sync.quietAnswer(request) ?? this.#answer(request);
  }

  /** Drops the answers of a user, who is not to be told any more what is in them. */
  forget(userId: string): void {
    for (const key of this.#answers?.keys() ?? [])
      if (key.startsWith(`${userId} `)) this.#answers?.delete(key);
  }

  async #answer(request: RepeatableRequest): Promise<string> {
    const key = keyOf(request);
    for (;;) {
      const known = this.#answers?.get(key);
      if (known !== undefined) return known;
      const running = this.#running.get(`${request.timeout} ${key}`);
      if (!running) return this.#run(request, key);
      const { text } = await running.answer;
      // An answer that was cut short, because the client that waited for it had gone, is not one for this client.
      if (!running.request.client.signal.aborted || request.client.signal.aborted) return text;
    }
  }

  /**
   * Nothing new is not worth remembering: whoever asks again is better told what has come since. Nor is a first sync
   * that the client has got: when it begins once more, it wants to know how things stand now.
   */
  async #run(request: RepeatableRequest, key: string): Promise<string> {
    const runningKey = `${request.timeout} ${key}`;
    const answer = this.#sync.sync(request);
    this.#running.set(runningKey, { request, answer });
    try {
      const { text, isNews } = await answer;
      if (isNews) this.#remember(request, key, text);
      return text;
    } finally {
      this.#running.delete(runningKey);
    }
  }

  #remember({ since, client }: RepeatableRequest, key: string, text: string): void {
    if (!this.#answers) return;
    this.#answers.set(key, text);
    if (since !== undefined) return;
    void client.wasSent.then((wasSent) => {
      if (wasSent) this.#answers?.delete(key);
    });
  }
}

const keyOf = (request: RepeatableRequest) =>
  `${request.userId} ${request.deviceId ?? ''} ${request.tokenId ?? ''} ${request.since ?? ''} ` +
  `${request.fullState} ${request.stateAfter} ${request.filterText ?? ''}`;
