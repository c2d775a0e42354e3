import type { Clock } from '../../kernel/clock.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import type { MediaModeration } from '../moderation/media-moderation.ts';

export interface MediaRetentionDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly moderation: MediaModeration;
  readonly options: {
    readonly media_retention: {
      /** Milliseconds; null: uploads never expire. */
      readonly local_media_lifetime: number | null;
      /** Milliseconds; null: copies never expire. */
      readonly remote_media_lifetime: number | null;
    };
  };
}

/** Deletes media that was last read before the lifetimes of `media_retention`. */
export class MediaRetention {
  readonly #deps: MediaRetentionDeps;

  constructor(deps: MediaRetentionDeps) {
    this.#deps = deps;
  }

  /** Deletes expired media. @param signal ends the work early; the next call continues it */
  async apply(signal: AbortSignal): Promise<void> {
    const { clock, moderation, options, log } = this.#deps;
    const { local_media_lifetime: ofLocal, remote_media_lifetime: ofRemote } = options.media_retention;
    const now = clock.now();
    const uploads = ofLocal === null ? 0 : await moderation.purgeLocal(now - ofLocal, signal);
    const copies = ofRemote === null ? 0 : await moderation.purgeRemote(now - ofRemote, signal);
    if (uploads + copies > 0)
      log.info({ uploads, copies }, 'Deleted media that has expired by media_retention');
  }
}
