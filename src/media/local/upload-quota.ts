import type { Clock } from '../../kernel/clock.ts';
import type { Reader } from '../../kernel/database/index.ts';
import { forbidden } from '../../protocol/index.ts';
import type { MediaRepositoryRules, UploadLimit } from '../media-rules.ts';
import { sumUploaded } from '../store.ts';
import type { MediaTables } from '../tables.ts';

/**
 * Limits how many bytes one user may upload in periods of time: `media_upload_limits`, or the limits that modules
 * return.
 */
export class UploadQuota {
  readonly #limits: readonly UploadLimit[];
  readonly #clock: Clock;
  readonly #rules: Pick<MediaRepositoryRules, 'limitExceeded' | 'uploadLimits'>;

  constructor(
    limits: readonly UploadLimit[],
    clock: Clock,
    rules: Pick<MediaRepositoryRules, 'limitExceeded' | 'uploadLimits'> = {},
  ) {
    this.#limits = limits;
    this.#clock = clock;
    this.#rules = rules;
  }

  /** Returns the limits of a user, for `check`. */
  async limitsOf(userId: string): Promise<readonly UploadLimit[]> {
    return (await this.#rules.uploadLimits?.(userId)) ?? this.#limits;
  }

  /**
   * Checks that an upload fits into the quota of a user.
   * @param limits the limits of the user, from `limitsOf`
   * @param size bytes of the next upload
   * @throws MatrixError M_FORBIDDEN when it exceeds the quota
   * Source: client-server API, `POST /_matrix/media/v3/upload`.
   */
  async check(
    reader: Reader<MediaTables>,
    limits: readonly UploadLimit[],
    userId: string,
    size: number,
  ): Promise<void> {
    for (const limit of limits) {
      const used = await sumUploaded(reader, userId, this.#clock.now() - limit.time_period);
      if (used + size <= limit.max_size) continue;
      this.#rules.limitExceeded?.({ userId, limit, used, size });
      throw forbidden('You have exceeded your upload quota');
    }
  }
}
