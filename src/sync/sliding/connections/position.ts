import { MatrixError } from '../../../protocol/index.ts';

/** The position of a client on its connection. */
export interface ConnectionPosition {
  readonly connection: number;
  /** Counts the answers of the connection that have changed the sent state. */
  readonly generation: number;
  /** Position of the streams. */
  readonly stream: number;
}

const form = /^c1_(\d{1,16})_(\d{1,16})_(\d{1,16})$/;

/**
 * Returns the `pos` of an answer, for example `c1_12_3_4711`. Other endpoints accept it as a token and read only its
 * `stream` (`decodePosition`).
 */
export function encodeConnectionPosition({ connection, generation, stream }: ConnectionPosition): string {
  return `c1_${connection}_${generation}_${stream}`;
}

/** Parses a `pos`. @throws MatrixError M_UNKNOWN_POS when the text is not a position of this server */
export function decodeConnectionPosition(pos: string): ConnectionPosition {
  const [connection = Number.NaN, generation = 0, stream = 0] = form.exec(pos)?.slice(1).map(Number) ?? [];
  if (![connection, generation, stream].every(Number.isSafeInteger)) throw unknownPos();
  return { connection, generation, stream };
}

/** The error that makes a client start a new connection. Source: MSC4186, "Connections". */
export const unknownPos = () => new MatrixError(400, 'M_UNKNOWN_POS', 'Unknown or expired position');
