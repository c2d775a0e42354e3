import { MiB } from '../../kernel/caches/index.ts';
import { JsonScan } from '../../kernel/json/index.ts';
import { OutboundError } from '../../kernel/outbound/index.ts';
import { MatrixError } from '../../protocol/index.ts';
import type { FederationRequest } from './request.ts';

/**
 * Bounds of a response. The state of the largest rooms has some 3,000,000 values in 600,000 objects; a response of the
 * same size that consists of small values would take gigabytes in memory. `stringBytes` is smaller than a response may
 * be, because one string is parsed without a pause.
 */
const bounds = { values: 8_000_000, containers: 2_000_000, items: 500_000, stringBytes: 4 * MiB };

/** A response without bounds of its own is measured only if it has more bytes than this. */
const maxUnmeasured = 64 * 1024;

/** The bounds of one response. Without them, a response of up to `maxUnmeasured` bytes is not measured. */
export type ResponseLimits = Pick<FederationRequest, 'maxValues' | 'budget'>;

/** Measures a response while it arrives, so that one with too many values is refused before it is in memory. */
export class ResponseMeasure {
  readonly #scan: JsonScan;
  /** The chunks so far, until there are enough bytes to measure them. */
  #unmeasured: Buffer[] | undefined;
  #bytes = 0;

  constructor({ maxValues, budget }: ResponseLimits = {}) {
    this.#scan = new JsonScan({ ...bounds, values: maxValues ?? bounds.values });
    if (maxValues === undefined && !budget) this.#unmeasured = [];
  }

  /** Number of values, as `JsonBounds` counts them; `undefined` for a short response, which is not measured. */
  get values(): number | undefined {
    return this.#unmeasured ? undefined : this.#scan.values;
  }

  /**
   * Measures the next chunk of the response.
   * @throws OutboundError `too-large`
   */
  add(chunk: Buffer): void {
    this.#bytes += chunk.length;
    this.#unmeasured?.push(chunk);
    if (this.#unmeasured && this.#bytes <= maxUnmeasured) return;
    const chunks = this.#unmeasured ?? [chunk];
    this.#unmeasured = undefined;
    try {
      for (const next of chunks) this.#scan.add(next);
    } catch (cause) {
      if (!(cause instanceof MatrixError)) throw cause;
      throw new OutboundError('too-large', cause.message, { cause });
    }
  }
}
