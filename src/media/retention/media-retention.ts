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

/** Numbers of files that a run has deleted. */
export interface DeletedMedia {
  [kind: string]: number;
  /** Uploads of local users. */
  readonly uploads: number;
  /** Copies of remote media. */
  readonly copies: number;
}

/** Deletes media that was not read during the lifetimes of `media_retention`. */
export class MediaRetention {
  readonly #deps: MediaRetentionDeps;

  constructor(deps: MediaRetentionDeps) {
    this.#deps = deps;
  }

  /**
   * Deletes expired media.
   * @param signal ends the work early; the next call continues it
   * @param report stores the numbers of files that are deleted so far
   */
  async apply(signal: AbortSignal, report: (deleted: DeletedMedia) => Promise<void>): Promise<void> {
    const { clock, moderation, options, log } = this.#deps;
    const { local_media_lifetime: uploadLifetime, remote_media_lifetime: copyLifetime } =
      options.media_retention;
    const now = clock.now();
    let [uploads, copies] = [0, 0];
    if (uploadLifetime !== null)
      await moderation.purgeLocal(now - uploadLifetime, signal, (count) => {
        uploads = count;
        return report({ uploads, copies });
      });
    if (copyLifetime !== null)
      await moderation.purgeRemote(now - copyLifetime, signal, (count) => {
        copies = count;
        return report({ uploads, copies });
      });
    if (uploads + copies > 0)
      log.info({ uploads, copies }, 'Deleted media that has expired by media_retention');
  }
}
