import { compileText, type TextTemplate } from '../../kernel/templates/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import { meetsRequirements } from '../attribute-requirements.ts';
import { boundedProfile } from '../bounded-profile.ts';
import type { RemoteUser } from '../browser-logins/identity-provider.ts';
import { LoginFailure } from '../browser-logins/login-failure.ts';
import type { OidcProviderConfig } from '../options/oidc.ts';
import { idByModule, mapByModule, type UserMapper } from '../user-mapper.ts';
import { hexEncodedName } from '../user-names.ts';

type Mapping = OidcProviderConfig['user_mapping_provider']['config'];

const filters = {
  /** Returns the part of a mail address before the `@`. */
  localpart_from_email: (address: unknown) => String(address).replace(/@[^@]*$/, ''),
};

/** Maps the claims about a user to an account, by a module or by the templates of the configuration. */
export class UserMapping {
  readonly #config: OidcProviderConfig;
  readonly #mapper: UserMapper | undefined;
  #templates: Promise<ReadonlyMap<string, TextTemplate>> | undefined;

  /** @param mapper the module that `user_mapping_provider` names; absent for the built-in mapping */
  constructor(config: OidcProviderConfig, mapper: UserMapper | undefined) {
    this.#config = config;
    this.#mapper = mapper;
  }

  /**
   * Checks the templates of the configuration.
   * @throws Error when a template is faulty
   */
  async checkTemplates(): Promise<void> {
    this.#templates ??= compileAll(this.#config.user_mapping_provider.config);
    await this.#templates;
  }

  /** Checks the claims against the attribute requirements. @throws LoginFailure unauthorised */
  check(claims: JsonObject): void {
    if (!meetsRequirements(claims, this.#config.attribute_requirements)) {
      throw new LoginFailure('unauthorised', 'You are not allowed to log in here', { status: 403 });
    }
  }

  /**
   * Returns the value that identifies the user at the provider.
   * @throws LoginFailure when it is empty, or when the template or the module fails
   */
  async subject(claims: JsonObject): Promise<string> {
    const subject = (await idByModule(this.#mapper, claims)) ?? (await this.#render('subject', claims));
    if (subject === undefined) throw new LoginFailure('mapping_error', 'The provider sent no id of the user');
    return subject;
  }

  /** Returns the user that the claims describe. @throws LoginFailure */
  async user(claims: JsonObject, accessToken: string): Promise<Omit<RemoteUser, 'sessionId'>> {
    const mapped =
      this.#mapper === undefined
        ? await this.#byTemplates(claims)
        : await mapByModule(this.#mapper, { provider: this.#config.idp_id, claims, accessToken });
    return {
      ...mapped,
      externalId: await this.subject(claims),
      existingLocalpart: this.#config.allow_existing_users ? mapped.localpart : undefined,
    };
  }

  async #byTemplates(claims: JsonObject): Promise<Omit<RemoteUser, 'externalId'>> {
    const { config } = this.#config.user_mapping_provider;
    const name = await this.#render('localpart', claims);
    if (config.localpart_template !== null && name === undefined) {
      throw new LoginFailure('mapping_error', 'The provider sent no user name');
    }
    const displayName = await this.#render('display name', claims);
    const email = await this.#render('email', claims);
    const extra = Object.keys(config.extra_attributes);
    const extraFields = await Promise.all(
      extra.map(async (key) => [key, (await this.#render(`extra ${key}`, claims)) ?? ''] as const),
    );
    return {
      localpart: name === undefined ? undefined : hexEncodedName(name),
      confirmsLocalpart: config.confirm_localpart,
      // An address that the provider has not verified may belong to another person.
      ...boundedProfile(displayName, email === undefined || isUnverified(claims) ? [] : [email]),
      picture: await this.#render('picture', claims),
      extraFields: Object.fromEntries(extraFields),
    };
  }

  /** Renders a template; `undefined` for an absent one and an empty result. */
  async #render(name: string, claims: JsonObject): Promise<string | undefined> {
    this.#templates ??= compileAll(this.#config.user_mapping_provider.config);
    const template = (await this.#templates).get(name);
    try {
      const text = template?.({ user: claims }).trim();
      return text === '' ? undefined : text;
    } catch (cause) {
      throw new LoginFailure('mapping_error', `The template of the ${name} has failed`, { cause });
    }
  }
}

/** Whether the provider says that it has not verified the address; Cognito and Apple send a string. */
const isUnverified = ({ email_verified: verified }: JsonObject) => verified === false || verified === 'false';

async function compileAll(config: Mapping): Promise<ReadonlyMap<string, TextTemplate>> {
  const texts: readonly (readonly [string, string | null])[] = [
    ['subject', templateOfClaim(config.subject_claim) ?? config.subject_template ?? '{{ user.sub }}'],
    ['localpart', config.localpart_template],
    ['display name', config.display_name_template],
    ['email', config.email_template],
    ['picture', config.picture_template ?? templateOfClaim(config.picture_claim)],
    ...Object.entries(config.extra_attributes).map(([key, text]) => [`extra ${key}`, text] as const),
  ];
  const compiled = texts.flatMap(([name, text]) =>
    text === null ? [] : [compile(name, text).then((template) => [name, template] as const)],
  );
  return new Map(await Promise.all(compiled));
}

async function compile(name: string, text: string): Promise<TextTemplate> {
  try {
    return await compileText(text, filters);
  } catch (cause) {
    throw new Error(`the template of the ${name} is faulty: ${(cause as Error).message.trim()}`, { cause });
  }
}

const templateOfClaim = (claim: string | null) =>
  claim === null ? null : `{{ user[${JSON.stringify(claim)}] }}`;
