import type { JsonObject } from '../../protocol/index.ts';

/** A limit of the bytes that one user uploads in a period. */
export interface UploadLimit {
  /** Bytes. */
  readonly maxSize: number;
  /** Milliseconds. */
  readonly period: number;
}

/** Limits of the media repository for single users. */
export interface MediaRules {
  /**
   * Returns the response to `GET /media/config` of a user; `undefined` leaves it to the next module, and finally to the
   * configuration. A failure counts as `undefined`.
   */
  mediaConfig?(userId: string): JsonObject | undefined | Promise<JsonObject | undefined>;
  /** Returns whether a user may upload a file of this many bytes. When it fails, the upload is rejected. */
  mayUpload?(userId: string, size: number): boolean | Promise<boolean>;
  /**
   * Returns the limits of a user's uploads in place of `media_upload_limits`; an empty list means no limits.
   * `undefined` leaves it to the next module, and finally to the configuration. A failure counts as `undefined`.
   */
  uploadLimits?(
    userId: string,
  ): readonly UploadLimit[] | undefined | Promise<readonly UploadLimit[] | undefined>;
  /**
   * Receives uploads that a limit has rejected. A failure changes nothing.
   * @param used bytes of the period so far
   * @param size bytes of the upload; 0 if it was rejected before it arrived
   */
  onUploadLimit?(userId: string, limit: UploadLimit, used: number, size: number): void | Promise<void>;
}

/** A rate limit: `burst` actions are allowed at once, and each second `perSecond` further actions become allowed. */
export interface ModuleRateLimit {
  /** 0 means no limit. */
  readonly perSecond: number;
  readonly burst: number;
}

/** Rate limits for single users. */
export interface RateLimitRules {
  /**
   * Returns the rate limit of a user who invites; `undefined` leaves it to the next module, and finally to the configuration. A failure
   * counts as `undefined`.
   * @param limiter `rc_invites.per_room`, `rc_invites.per_user` or `rc_invites.per_issuer`
   */
  limitOf?(
    userId: string,
    limiter: string,
  ): ModuleRateLimit | undefined | Promise<ModuleRateLimit | undefined>;
}

/** One batch of a background update that an administrator has started. */
export interface UpdateBatch {
  /** The `job_name` of the update. */
  readonly name: string;
  /** Rows that are processed so far; 0 before the first batch. */
  readonly rows: number;
  /** Milliseconds that the batches so far have taken, without pauses. */
  readonly duration: number;
}

/** Controls background updates of the database. */
export interface BackgroundUpdateRules {
  /**
   * Runs before each batch of a background update. The batch waits for the answer, at most 10 seconds. After a failure the
   * batch runs nevertheless.
   * @returns a function that runs after the batch
   */
  beforeBatch?(batch: UpdateBatch): (() => void) | undefined | Promise<(() => void) | undefined>;
  /**
   * Returns the number of rows of the next batch, from 1 to 1,000; `undefined` leaves it to the next module, and finally to
   * the server, which takes 50. A failure or a number out of this range counts as `undefined`.
   */
  batchSize?(batch: UpdateBatch): number | undefined | Promise<number | undefined>;
}
