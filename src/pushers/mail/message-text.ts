import type { JsonObject } from '../../protocol/index.ts';

/** Maximum number of characters of a message in a mail. */
const maxLength = 1_000;

const fileKinds: Readonly<Record<string, string>> = {
  'm.image': 'a picture',
  'm.video': 'a video',
  'm.audio': 'an audio file',
  'm.file': 'a file',
};

/**
 * Returns the text that a mail shows for an event. Messages of encrypted rooms are shown without their content.
 * @param isEncrypted whether the room is encrypted
 * @returns `undefined` for events that mails do not show
 */
export function messageText(type: string, content: JsonObject, isEncrypted: boolean): string | undefined {
  if (type === 'm.room.encrypted' || (isEncrypted && type === 'm.room.message')) return 'Encrypted message';
  if (type !== 'm.room.message') return undefined;
  const { msgtype, body } = content;
  const text = typeof body === 'string' ? body : '';
  const fileKind = typeof msgtype === 'string' ? fileKinds[msgtype] : undefined;
  if (fileKind === undefined && text.trim() === '') return undefined;
  const shown = fileKind === undefined ? text : `Sent ${fileKind}${text === '' ? '' : `: ${text}`}`;
  const isTooLong = shown.length > maxLength;
  return isTooLong ? `${shown.slice(0, maxLength).toWellFormed()} …` : shown;
}
