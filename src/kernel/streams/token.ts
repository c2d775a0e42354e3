import { invalidParam } from '../../protocol/index.ts';

/**
 * Forms of sync tokens. The letter is the kind of token, the digit its form: `s1_4711` is a position; `s2_4711_4600` is
 * a position and a lower position. The client has its to-device messages up to the lower one (later messages did not
 * fit into the last response). A later form may hold one position for each writer.
 */
const form = /^s(?:1_(\d{1,16})|2_(\d{1,16})_(\d{1,16}))$/;

/** A token of sliding sync. Its last number is a position; the slice `sync` reads its other parts. */
const connectionForm = /^c1_\d{1,16}_\d{1,16}_(\d{1,16})$/;

/** The content of a sync token. */
export interface SyncPosition {
  /** The client has all facts up to this position. */
  readonly position: number;
  /** The client has to-device messages up to this position only; at most `position`. */
  readonly toDevice: number;
}

/** Returns the token of a position, for instance `s1_4711`. */
export function encodePosition(position: number): string {
  return `s1_${position}`;
}

/** Returns a sync token: `s1_4711`, or `s2_4711_4700` when the client has to-device messages up to 4700 only. */
export function encodeSyncPosition({ position, toDevice }: SyncPosition): string {
  return toDevice === position ? encodePosition(position) : `s2_${position}_${toDevice}`;
}

/**
 * Parses a token of classic sync.
 * @throws MatrixError M_INVALID_PARAM for any other text, also for a token of sliding sync
 */
export function decodeSyncPosition(token: string): SyncPosition {
  const [, single, position = single, toDevice = single] = form.exec(token) ?? [];
  const decoded = { position: Number(position), toDevice: Number(toDevice) };
  if (!Number.isSafeInteger(decoded.position) || !(decoded.toDevice <= decoded.position)) {
    throw invalidParam('This server did not issue the sync token');
  }
  return decoded;
}

/**
 * Returns the position of a token of any form, of classic or sliding sync.
 * Source: client-server API, "Pagination"; MSC4186, "Connections".
 * @throws MatrixError M_INVALID_PARAM for a text of another form
 */
export function decodePosition(token: string): number {
  const [, position] = connectionForm.exec(token) ?? [];
  return decodeSyncPosition(position === undefined ? token : encodePosition(Number(position))).position;
}
