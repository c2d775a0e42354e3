import { hash } from 'node:crypto';
import type { Profile } from '@node-saml/node-saml';
import { meetsRequirements } from '../attribute-requirements.ts';
import { boundedProfile } from '../bounded-profile.ts';
import type { RemoteUser } from '../browser-logins/identity-provider.ts';
import { LoginFailure } from '../browser-logins/login-failure.ts';
import type { SsoConfig } from '../config.ts';
import { idByModule, mapByModule, type UserMapper } from '../user-mapper.ts';
import { dotReplacedName, hexEncodedName } from '../user-names.ts';

export type SamlOptions = NonNullable<SsoConfig['saml2_config']>;

/** Attributes of a user: name to values. */
type Attributes = Readonly<Record<string, readonly string[]>>;

/** Maps the attributes of a user to an account, by a module or by the options of the built-in mapping. */
export class SamlUserMapping {
  readonly #options: SamlOptions;
  readonly #mapper: UserMapper | undefined;

  /** @param mapper the module that `user_mapping_provider` names; absent for the built-in mapping */
  constructor(options: SamlOptions, mapper: UserMapper | undefined) {
    this.#options = options;
    this.#mapper = mapper;
  }

  /**
   * Returns the user of a verified response.
   * @param areSeveral whether users of several identity providers may log in
   * @throws LoginFailure
   */
  async user(profile: Profile, areSeveral: boolean): Promise<RemoteUser> {
    const attributes = attributesOf(profile);
    const { attribute_requirements, grandfathered_mxid_source_attribute: oldSource } = this.#options;
    if (!meetsRequirements(attributes, attribute_requirements)) {
      throw new LoginFailure('unauthorised', 'You are not allowed to log in here', { status: 403 });
    }
    const issuer = String(profile.issuer);
    const user = { issuer, nameId: profile.nameID as string | undefined, attributes };
    const mapped =
      this.#mapper === undefined ? this.#byAttributes(attributes) : await mapByModule(this.#mapper, user);
    const id = (await idByModule(this.#mapper, user)) ?? required(attributes, 'uid');
    const [oldName] = oldSource === '' ? [] : (attributes[oldSource] ?? []);
    return {
      ...mapped,
      ...externalIdOf(id, issuer, areSeveral),
      existingLocalpart: oldName === undefined ? undefined : hexEncodedName(oldName),
    };
  }

  #byAttributes(attributes: Attributes): Omit<RemoteUser, 'externalId'> {
    const { mxid_source_attribute: source, mxid_mapping: mapping } =
      this.#options.user_mapping_provider.config;
    const name = required(attributes, source);
    return {
      localpart: mapping === 'dotreplace' ? dotReplacedName(name) : hexEncodedName(name),
      ...boundedProfile(attributes['displayName']?.[0], attributes['email'] ?? []),
    };
  }
}

/** Returns the first value of an attribute. @throws LoginFailure when there is none */
function required(attributes: Attributes, name: string): string {
  const [value] = attributes[name] ?? [];
  if (value !== undefined) return value;
  throw new LoginFailure('mapping_error', `The identity provider sent no attribute ${name}`);
}

/**
 * Returns the external id of a user. With several identity providers it contains the entity id, because two providers
 * may send the same `uid`. The id in the other form (with or without the entity id) is returned as well, so
 * that an account that was linked by that id stays linked.
 */
function externalIdOf(
  uid: string,
  entityId: string,
  areSeveral: boolean,
): Pick<RemoteUser, 'externalId' | 'issuer'> {
  const provider = entityId.length <= maxEntityId ? entityId : hash('sha256', entityId, 'hex');
  const withProvider = `${provider} ${uid}`;
  const [externalId, otherExternalId] = areSeveral ? [withProvider, uid] : [uid, withProvider];
  return { externalId, issuer: { entityId, isOneOfSeveral: areSeveral, otherExternalId } };
}

/** Maximum characters of an entity id in external ids, which contain the SHA-256 of a longer entity id instead. */
const maxEntityId = 200;

/** Returns the attributes of an assertion by name, with common names in place of known object identifiers. */
function attributesOf(profile: Profile): Record<string, string[]> {
  const given = profile['attributes'] as Readonly<Record<string, unknown>> | undefined;
  const entries = Object.entries(given ?? {}).map(([name, value]) => {
    const values = Array.isArray(value) ? value : [value];
    return [friendlyNames[name] ?? name, values.map(String)] as const;
  });
  return Object.fromEntries(entries);
}

/** Names of common attributes, by their object identifiers. Source: RFC 4519 and eduPerson. */
const friendlyNames: Readonly<Record<string, string>> = {
  'urn:oid:0.9.2342.19200300.100.1.1': 'uid',
  'urn:oid:0.9.2342.19200300.100.1.3': 'email',
  'urn:oid:2.16.840.1.113730.3.1.241': 'displayName',
  'urn:oid:2.5.4.42': 'givenName',
  'urn:oid:2.5.4.4': 'surname',
  'urn:oid:1.3.6.1.4.1.5923.1.1.1.6': 'eduPersonPrincipalName',
  mail: 'email',
};
