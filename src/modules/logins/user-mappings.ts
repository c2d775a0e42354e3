import { isJsonObject, type JsonObject, unknown } from '../../protocol/index.ts';
import type { UserMapper } from '../../sso/index.ts';
import type { MappedUser } from '../api/index.ts';
import { denialOf } from '../calls/decide.ts';
import { CallbackFailure, type ModuleCalls } from '../calls/module-calls.ts';

/**
 * The callbacks that the default export of a module of `user_mapping_provider` returns, for OpenID Connect as well as for
 * SAML. `UserMapper` says what they answer.
 */
export interface MappingCallbacks {
  idOf?(user: object): unknown;
  map(user: object): unknown;
}

/** Maximum characters of each text of a mapped user. */
const maxText = 2000;

/** Maximum number of mail addresses of a mapped user. */
const maxEmails = 20;

/** Maximum characters of the attributes as JSON. */
const maxAttributes = 4096;

/** Adapts the mapping callbacks of a module to `UserMapper`. A failure of the module fails the login. */
export function moduleMapper(module: string, callbacks: MappingCallbacks, calls: ModuleCalls): UserMapper {
  /** @throws MatrixError with the denial of the module, or with status 500 when the module fails */
  const callModule = async <T>(
    callback: string,
    work: () => unknown,
    read: (answer: unknown) => T,
  ): Promise<T> => {
    try {
      const answer = await calls.run(module, callback, work);
      const denial = denialOf(answer);
      if (denial !== undefined) throw denial;
      try {
        return read(answer);
      } catch (error) {
        throw calls.failed(module, callback, 'answer', error);
      }
    } catch (error) {
      if (!(error instanceof CallbackFailure)) throw error;
      throw unknown('This server could not find out which account is yours. Try again later');
    }
  };
  return {
    idOf: (user) =>
      callbacks.idOf === undefined
        ? undefined
        : callModule(
            'idOf',
            () => callbacks.idOf?.(user),
            (answer) => textOf('id', answer),
          ),
    map: (user) => callModule('map', () => callbacks.map(user), mappedUserOf),
  };
}

/** @throws TypeError for an answer of another type */
function mappedUserOf(answer: unknown): MappedUser {
  if (!isJsonObject(answer as JsonObject)) throw new TypeError('The answer is not an object');
  const { localpart, confirmsLocalpart, displayName, emails, picture, attributes, ...others } =
    answer as Record<keyof MappedUser, unknown>;
  // A misspelled member, or a denial with an invalid status, must not count as a mapped user.
  const [unexpected] = Object.keys(others);
  if (unexpected !== undefined) throw new TypeError(`The answer has an unknown member ${unexpected}`);
  if (confirmsLocalpart !== undefined && typeof confirmsLocalpart !== 'boolean') {
    throw new TypeError('confirmsLocalpart is not a boolean');
  }
  return {
    ...(localpart !== undefined && { localpart: textOf('localpart', localpart) }),
    ...(confirmsLocalpart !== undefined && { confirmsLocalpart }),
    ...(displayName !== undefined &&
      displayName !== '' && { displayName: textOf('displayName', displayName) }),
    ...(emails !== undefined && { emails: emailsOf(emails) }),
    ...(picture !== undefined && picture !== '' && { picture: textOf('picture', picture) }),
    ...(attributes !== undefined && { attributes: attributesOf(attributes) }),
  };
}

function textOf(name: string, value: unknown): string {
  if (typeof value === 'string' && value !== '' && value.length <= maxText) return value;
  throw new TypeError(`${name} is not a text of 1 to ${maxText} characters`);
}

function emailsOf(value: unknown): string[] {
  if (!Array.isArray(value) || value.length > maxEmails) {
    throw new TypeError(`emails is not a list of at most ${maxEmails} texts`);
  }
  return value.map((email) => textOf('emails', email));
}

function attributesOf(value: unknown): JsonObject {
  const text = JSON.stringify(value);
  if (isJsonObject(value as JsonObject) && text.length <= maxAttributes)
    return JSON.parse(text) as JsonObject;
  throw new TypeError(`attributes is not an object of at most ${maxAttributes} characters of JSON`);
}
