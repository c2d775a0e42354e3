import { invalidParam } from '../../protocol/index.ts';

/** A place in the list of public rooms: beside one of its rooms. */
export interface ListPlace {
  readonly direction: 'forward' | 'backward';
  readonly joinedMembers: number;
  readonly roomId: string;
}

/** The place as clients hold it. */
export function encodePlace({ direction, joinedMembers, roomId }: ListPlace): string {
  return Buffer.from(`${direction === 'forward' ? 'f' : 'b'}${joinedMembers} ${roomId}`).toString(
    'base64url',
  );
}

/** @throws MatrixError M_INVALID_PARAM when the token is not one of ours */
export function decodePlace(token: string): ListPlace {
  const text = Buffer.from(token, 'base64url').toString();
  const [, letter, digits, roomId] = /^([fb])(\d{1,15}) ([^\0]{1,255})$/s.exec(text) ?? [];
  if (roomId === undefined) throw invalidParam('This is not a token of this list');
  return { direction: letter === 'f' ? 'forward' : 'backward', joinedMembers: Number(digits), roomId };
}
