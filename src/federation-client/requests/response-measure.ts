import { MiB } from '../../kernel/caches/index.ts';
import { JsonScan } from '../../kernel/json/index.ts';
import { OutboundError } from '../../kernel/outbound/index.ts';
import { MatrixError } from '../../protocol/index.ts';
import type { FederationRequest } from './request.ts';

/**
 * Bounds of a response. The state of the largest rooms has some 3,000,000 values in 600,000 objects; as many bytes of small
 * values would take gigabytes of memory. `items` bounds each list of the outermost object. `stringBytes` is far below the
 * maximum of a response, because one string is parsed without a pause.
 */
const bounds = { values: 8_000_000, containers: 2_000_000, items: 500_000, stringBytes: 4 * MiB };

/** A response to a request without `maxValues` and `budget` is measured only if it has more bytes than this. */
const maxUnmeasured = 64 * 1024;

/** Measures a response while it arrives, so that one with too many values is refused before it is in memory. */
export class ResponseMeasure {
  readonly #scan: JsonScan;
  /** The chunks so far, until there are enough bytes to measure them. */
  #unmeasured: Buffer[] | undefined;
  #bytes = 0;

  /** @param request its maximum number of values, and a budget that counts the values of several responses */
  constructor({ maxValues, budget }: Pick<FederationRequest, 'maxValues' | 'budget'>) {
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
