import { invalidParam, type JsonObject, type JsonValue, MatrixError } from '../protocol/index.ts';

/** Names of fields. Source: client-server API, `PUT /profile/{userId}/{keyName}`. */
const fieldGrammar = /^(avatar_url|displayname|m\.tz|[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+)$/;

/** Maximum bytes of a field name. */
const maxFieldBytes = 255;

/** A profile as JSON must have fewer bytes than this number. */
export const maxProfileBytes = 65_536;

/** Maximum characters of a display name or time zone. */
const maxNameLength = 256;

/** Maximum characters of an avatar URL. */
const maxUrlLength = 1000;

/** Checks the name of a field. @throws MatrixError M_KEY_TOO_LARGE, M_INVALID_PARAM */
export function checkField(field: string): void {
  if (Buffer.byteLength(field) > maxFieldBytes) {
    throw new MatrixError(
      400,
      'M_KEY_TOO_LARGE',
      `The name of a profile field has at most ${maxFieldBytes} bytes`,
    );
  }
  if (!fieldGrammar.test(field)) throw invalidParam('Invalid name of a profile field');
}

/**
 * Checks the fields whose type is specified. An empty display name or avatar is valid: it removes the field. An avatar
 * may be any URL: bridges set URLs of other networks.
 * @throws MatrixError M_INVALID_PARAM
 */
export function checkValue(field: string, value: JsonValue): void {
  if (field === 'displayname') checkText(field, value, maxNameLength);
  if (field === 'avatar_url') checkText(field, value, maxUrlLength);
  if (field === 'm.tz') checkText(field, value, maxNameLength);
}

/** Cuts a display name to its maximum length: names that identity providers and modules give to new users are not checked. */
export const boundedName = (name: string) => name.slice(0, maxNameLength).toWellFormed();

function checkText(field: string, value: JsonValue, maxLength: number): void {
  if (typeof value !== 'string') throw invalidParam(`'${field}' must be a string`);
  if (value.length > maxLength) throw invalidParam(`'${field}' has at most ${maxLength} characters`);
}

/** Whether setting a field to this value removes it. */
export const isRemoval = (field: string, value: JsonValue) =>
  value === '' && (field === 'displayname' || field === 'avatar_url');

/** @throws MatrixError M_PROFILE_TOO_LARGE */
export function checkProfileSize(profile: JsonObject): void {
  if (Buffer.byteLength(JSON.stringify(profile)) >= maxProfileBytes) {
    throw new MatrixError(400, 'M_PROFILE_TOO_LARGE', 'A profile must stay below 64 KiB');
  }
}

/** Returns one field of a profile; an empty object when it is unset. */
export const fieldOf = (profile: JsonObject, field: string): JsonObject =>
  Object.hasOwn(profile, field) ? { [field]: profile[field] ?? null } : {};
