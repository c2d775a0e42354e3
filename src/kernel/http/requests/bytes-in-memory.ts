import { limitExceeded } from '../../../protocol/index.ts';
import { addressKey } from '../../rate-limits/index.ts';

/** Maximum bytes of the bodies that are in memory at the same time. */
export interface MemoryBounds {
  /** From one sender. */
  readonly ofSender: number;
  readonly total: number;
}

/** Milliseconds after which a client or server may repeat a request that was refused because of these bounds. */
const retryAfter = 5_000;

/** The bytes of one body that are in memory. */
export interface CountedBody {
  /** Counts bytes that have arrived. @throws MatrixError M_LIMIT_EXCEEDED beyond the bounds */
  add(bytes: number): void;
  /** Ends the count of the body's bytes: it has been processed or dropped. */
  release(): void;
}

/** Bounds the bytes of request bodies that are in memory until they are processed, for each sender and in total. */
export class BytesInMemory {
  readonly #bytes = new Map<string, number>();
  readonly #bounds: MemoryBounds;
  #total = 0;

  constructor(bounds: MemoryBounds) {
    this.#bounds = bounds;
  }

  /** Bytes of the bodies of all senders that have not been released. */
  get total(): number {
    return this.#total;
  }

  /** Begins to count the bytes of a body. @param idOrAddress a user id or an IP address */
  open(idOrAddress: string): CountedBody {
    const sender = addressKey(idOrAddress);
    let size = 0;
    return {
      add: (bytes) => {
        const bytesOfSender = (this.#bytes.get(sender) ?? 0) + bytes;
        if (bytesOfSender > this.#bounds.ofSender || this.#total + bytes > this.#bounds.total)
          throw limitExceeded(retryAfter);
        size += bytes;
        this.#bytes.set(sender, bytesOfSender);
        this.#total += bytes;
      },
      release: () => {
        const left = (this.#bytes.get(sender) ?? 0) - size;
        if (left > 0) this.#bytes.set(sender, left);
        else this.#bytes.delete(sender);
        this.#total -= size;
        size = 0;
      },
    };
  }
}
