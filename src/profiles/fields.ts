import { invalidParam, isMxcUri, type JsonObject, type JsonValue, MatrixError } from '../protocol/index.ts';

/** Client-server API, `PUT /profile/{userId}/{keyName}`. */
const fieldGrammar = /^(avatar_url|displayname|m\.tz|[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+)$/;

/** Bytes of a field's name, and of a whole profile as JSON. */
const [longestField, largestProfile] = [255, 65_536];

/** Characters. */
const [longestName, longestUrl] = [256, 1000];

/** @throws MatrixError M_KEY_TOO_LARGE, M_INVALID_PARAM */
export function checkField(field: string): void {
  if (Buffer.byteLength(field) > longestField) {
    throw new MatrixError(400, 'M_KEY_TOO_LARGE', `Names of fields have at most ${longestField} bytes`);
  }
  if (!fieldGrammar.test(field)) throw invalidParam('This can not be the name of a field of a profile');
}

/** Checks the fields whose form is known. An empty name or avatar stands for none. Throws MatrixError M_INVALID_PARAM. */
export function checkValue(field: string, value: JsonValue): void {
  if (field === 'displayname') checkText(field, value, longestName);
  if (field === 'avatar_url') {
    const url = checkText(field, value, longestUrl);
    if (url !== '' && !isMxcUri(url)) throw invalidParam("'avatar_url' must be an mxc:// URI");
  }
  if (field === 'm.tz') checkText(field, value, longestName);
}

function checkText(field: string, value: JsonValue, longest: number): string {
  if (typeof value !== 'string') throw invalidParam(`'${field}' must be a string`);
  if (value.length > longest) throw invalidParam(`'${field}' has at most ${longest} characters`);
  return value;
}

/** Whether setting a field to this value means to remove it. */
export const isRemoval = (field: string, value: JsonValue) =>
  value === '' && (field === 'displayname' || field === 'avatar_url');

/** @throws MatrixError M_PROFILE_TOO_LARGE */
export function checkProfileSize(profile: JsonObject): void {
  if (Buffer.byteLength(JSON.stringify(profile)) >= largestProfile) {
    throw new MatrixError(400, 'M_PROFILE_TOO_LARGE', 'A profile must stay below 64 KiB');
  }
}
