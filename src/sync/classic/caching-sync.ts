import { BriefMap } from '../../kernel/brief-map.ts';
import { type Cache, type CacheRegistry, MiB } from '../../kernel/caches/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { LongText } from '../../kernel/http/index.ts';
import type { Sync, SyncAnswer, SyncRequest } from './sync.ts';

/** A sync request with what distinguishes it from other requests of the same device. */
export interface RepeatableRequest extends SyncRequest {
  /** Identifies the access token: a device that logs in again has another token. */
  readonly tokenId: number | undefined;
  /** The filter parameter as the client sent it: an id or JSON. */
  readonly filterText: string | undefined;
  readonly client: SyncRequest['client'] & {
    /** Whether the whole answer was sent to the client; read for first syncs only. */
    readonly wasSent: Promise<boolean>;
  };
}

/** Maximum bytes of all cached answers. */
const maxBytes = 24 * MiB;

/** Maximum number of characters of one cached answer. */
const maxAnswerCharacters = 8 * MiB;

interface CachedAnswer {
  /** The answer as JSON text. */
  readonly text: string | LongText;
  /** When the cache drops it, in milliseconds of the monotonic clock. */
  readonly until: number;
}

interface Running {
  readonly request: RepeatableRequest;
  readonly answer: Promise<SyncAnswer>;
}

/**
 * Answers syncs: repeated requests from a cache, all others by `Sync`. Clients repeat a request when they have lost
 * their connection before the answer arrived, or have stopped waiting. Identical requests at the same time share one
 * answer, and later identical requests receive it for a while (`caches.sync_response_cache_duration`), so that the work
 * of a large sync is done once.
 */
export class CachingSync {
  readonly #sync: Pick<Sync, 'quietAnswer' | 'sync'>;
  /** The cached answers by `keyOf`. */
  readonly #answers: Cache<string, CachedAnswer> | undefined;
  readonly #clock: Clock;
  readonly #duration: number;
  readonly #running = new BriefMap<string, Running>();

  /** @param duration milliseconds that answers are cached; 0 disables the cache */
  constructor(
    sync: Pick<Sync, 'quietAnswer' | 'sync'>,
    { clock, caches }: { readonly clock: Clock; readonly caches: CacheRegistry },
    duration: number,
  ) {
    this.#sync = sync;
    this.#clock = clock;
    this.#duration = duration;
    if (duration === 0) return;
    this.#answers = caches.create('sync_answers', {
      maxBytes,
      sizeOf: ({ text }) => text.length,
      isExpired: ({ until }) => until <= clock.monotonic(),
    });
  }

  /**
   * Returns the answer as JSON text, from the cache if it is there.
   * @throws MatrixError M_INVALID_PARAM for an unknown token
   */
  sync(request: RepeatableRequest): string | Promise<string | LongText> {
    return this.#sync.quietAnswer(request) ?? this.#answer(request);
  }

  /** Drops the cached answers of a user, because they contain data that the user must not see any more. */
  forget(userId: string): void {
    this.#answers?.deleteWhere((_answer, key) => key.startsWith(`${userId} `));
  }

  async #answer(request: RepeatableRequest): Promise<string | LongText> {
    const key = keyOf(request);
    for (;;) {
      const cached = this.#answers?.get(key);
      if (cached !== undefined) return cached.text;
      const running = this.#running.get(key);
      if (!running) return this.#run(request, key);
      const { text } = await running.answer;
      // An answer that was cut short, because its client disconnected, is not used for another client.
      if (!running.request.client.signal.aborted || request.client.signal.aborted) return text;
    }
  }

  /**
   * Makes an answer and caches it, with two exceptions: an answer without new data, because a repeated request
   * should include data that has arrived since; and a first sync that the client has received, because a client that
   * starts again wants the current state.
   */
  async #run(request: RepeatableRequest, key: string): Promise<string | LongText> {
    const answer = this.#sync.sync(request);
    this.#running.set(key, { request, answer });
    try {
      const { text, hasNewData } = await answer;
      if (hasNewData) this.#remember(request, key, text);
      return text;
    } finally {
      this.#running.delete(key);
    }
  }

  #remember({ since, client }: RepeatableRequest, key: string, text: string | LongText): void {
    if (!this.#answers || text.length > maxAnswerCharacters) return;
    this.#answers.set(key, { text, until: this.#clock.monotonic() + this.#duration });
    if (since !== undefined) return;
    void client.wasSent.then((wasSent) => {
      if (wasSent) this.#answers?.delete(key);
    });
  }
}

const keyOf = (request: RepeatableRequest) =>
  `${request.userId} ${request.deviceId ?? ''} ${request.tokenId ?? ''} ${request.since ?? ''} ` +
  `${request.fullState} ${request.stateAfter} ${request.timeout} ${request.filterText ?? ''}`;
