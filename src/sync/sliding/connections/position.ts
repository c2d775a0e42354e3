import { MatrixError } from '../../../protocol/index.ts';

/** Where a client is on its connection. */
export interface ConnectionPosition {
  readonly connection: number;
  /** Counts the answers of the connection that have changed what is known to be sent on it. */
  readonly generation: number;
  /** On the stream of everything. */
  readonly stream: number;
}

const form = /^c1_(\d{1,16})_(\d{1,16})_(\d{1,16})$/;

/** The `pos` of an answer, for instance `c1_12_3_4711`. Elsewhere it stands for its `stream` (`decodePosition`). */
export function encodeConnectionPosition({ connection, generation, stream }: ConnectionPosition): string {
  return `c1_${connection}_${generation}_${stream}`;
}

/** @throws MatrixError M_UNKNOWN_POS when it is not one of ours */
export function decodeConnectionPosition(pos: string): ConnectionPosition {
  const [connection = Number.NaN, generation = 0, stream = 0] = form.exec(pos)?.slice(1).map(Number) ?? [];
  if (![connection, generation, stream].every(Number.isSafeInteger)) throw unknownPos();
  return { connection, generation, stream };
}

/** The client has to begin anew. Source: MSC4186, "Connections". */
export const unknownPos = () =>
  new MatrixError(400, 'M_UNKNOWN_POS', 'This position is not known, or not any more');
