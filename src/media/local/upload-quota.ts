import type { Clock } from '../../kernel/clock.ts';
import type { Reader } from '../../kernel/database/index.ts';
import { forbidden } from '../../protocol/index.ts';
import { sumUploaded } from '../store.ts';
import type { MediaTables } from '../tables.ts';

/** `time_period` in milliseconds, `max_size` in bytes. */
export interface UploadLimit {
  readonly time_period: number;
  readonly max_size: number;
}

/** Limits how many bytes one user may upload in periods of time: `media_upload_limits`. */
export class UploadQuota {
  readonly #limits: readonly UploadLimit[];
  readonly #clock: Clock;

  constructor(limits: readonly UploadLimit[], clock: Clock) {
    this.#limits = limits;
    this.#clock = clock;
  }

  /**
   * @param size bytes of the next upload
   * @throws MatrixError M_FORBIDDEN when it exceeds the quota
   * Source: client-server API, `POST /_matrix/media/v3/upload`.
   */
  async check(reader: Reader<MediaTables>, userId: string, size: number): Promise<void> {
    for (const { time_period, max_size } of this.#limits) {
      const used = await sumUploaded(reader, userId, this.#clock.now() - time_period);
      if (used + size > max_size) throw forbidden('You have exceeded your upload quota');
    }
  }
}
