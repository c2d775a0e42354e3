import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { Type } from 'typebox';
import { fileProblem } from '../../kernel/config/index.ts';
import { type Reply, type Route, route } from '../../kernel/http/index.ts';
import { Pages, pageTemplates } from '../../kernel/pages/index.ts';
import { StartFailure } from '../../kernel/start-failure.ts';
import { Templates } from '../../kernel/templates/index.ts';
import { forbidden, invalidParam, missingParam, notFound } from '../../protocol/index.ts';
import type { AccountOptions } from '../account-options.ts';
import type { AccountReader } from '../account-reader.ts';
import type { Consents } from './consents.ts';

export interface ConsentRoutesDeps {
  readonly consents: Consents;
  readonly accounts: AccountReader;
}

type Options = Pick<AccountOptions, 'user_consent' | 'server_name'>;

const path = '/_proto/consent';

/** The language of the policy when the template exists in no language that the browser accepts. */
const defaultLanguage = 'en';

/** Versions become names of files, so they have no slashes. */
const versionForm = /^[\w.-]{1,64}$/;

/**
 * Serves the policy of `user_consent` without authentication. A signed link (`u`, `h`) leads to a form for agreeing to
 * the policy. Returns no routes without `template_dir`. The templates receive the same parameters and values as in the
 * reference server.
 */
export function consentRoutes({ consents, accounts }: ConsentRoutesDeps, options: Options): Route[] {
  const folder = options.user_consent?.template_dir ?? null;
  if (folder === null) return [];
  const currentVersion = options.user_consent?.version ?? undefined;
  const languages = languagesIn(folder);

  /**
   * Returns the first language with the template `name` among those that the browser accepts and the default language.
   * @throws MatrixError M_NOT_FOUND
   */
  const languageOf = (name: string, accepted: string | string[] | undefined): string => {
    const hasTemplate = (language: string) =>
      languages.has(language) && existsSync(join(folder, language, name));
    const found = [...acceptedLanguages(accepted).add(defaultLanguage)].find(hasTemplate);
    if (found === undefined) throw notFound('There is no such version of the policy');
    return found;
  };
  const show = async (
    name: string,
    accepted: string | string[] | undefined,
    values: Readonly<Record<string, unknown>>,
  ): Promise<Reply> => {
    const language = languageOf(name, accepted);
    const pages = languages.get(language) ?? openPages(folder, language);
    languages.set(language, pages);
    return pages.page(name, values);
  };
  const versionIn = (requestedVersion: string | undefined): string => {
    const version = requestedVersion ?? currentVersion;
    if (version === undefined) throw missingParam("'v' is missing");
    if (!versionForm.test(version)) throw invalidParam("'v' is not a version of the policy");
    return version;
  };
  const userIn = async (user: string, signature: string | undefined): Promise<string> => {
    if (!consents.isSigned(user, signature ?? '')) throw forbidden('The link is not valid');
    const userId = user.startsWith('@') ? user : `@${user}:${options.server_name}`;
    if (!(await accounts.userExists(userId))) throw notFound('No such user');
    return userId;
  };
  const optional = Type.Optional(Type.String());
  return [
    route(
      {
        method: 'GET',
        path,
        auth: 'none',
        errors: 'page',
        query: Type.Object({ v: optional, u: optional, h: optional }),
      },
      async ({ query: { v, u, h }, headers }) => {
        const version = versionIn(v);
        const userId = u === undefined ? undefined : await userIn(u, h);
        return show(`${version}.html`, headers['accept-language'], {
          version,
          user: u ?? '',
          userhmac: h ?? '',
          public_version: userId === undefined,
          has_consented: userId !== undefined && (await consents.versionOf(userId)) === version,
        });
      },
    ),
    route(
      {
        method: 'POST',
        path,
        auth: 'none',
        errors: 'page',
        bodyMode: 'form',
        body: Type.Object({ v: Type.String(), u: Type.String(), h: Type.String() }),
      },
      async ({ body: { v, u, h }, headers }) => {
        const version = versionIn(v);
        const accepted = headers['accept-language'];
        // Users can agree only to versions that they can read.
        languageOf(`${version}.html`, accepted);
        await consents.record(await userIn(u, h), version);
        return show('success.html', accepted, { version });
      },
    ),
  ];
}

/**
 * Returns the languages of the templates: the names of the folders. The pages of a language are opened when they are
 * needed.
 * @throws StartFailure when the folder cannot be read
 */
function languagesIn(folder: string): Map<string, Pages | undefined> {
  const folders = entriesOf(folder).filter((entry) => entry.isDirectory() || entry.isSymbolicLink());
  return new Map(folders.map(({ name }) => [name, undefined]));
}

function entriesOf(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch (error) {
    const problem = `the folder ${folder} cannot be read: ${fileProblem(error)}`;
    throw new StartFailure(`user_consent.template_dir: ${problem}`, { cause: error });
  }
}

const openPages = (folder: string, language: string) =>
  new Pages(new Templates({ folders: [join(folder, language), pageTemplates] }));

/**
 * Returns the languages of an `Accept-Language` header in their order, without duplicates: `de-AT` is followed by `de`.
 */
function acceptedLanguages(accepted: string | string[] | undefined): Set<string> {
  const wanted = String(accepted ?? '')
    .split(',')
    .map((part) => part.split(';', 1)[0]?.trim() ?? '');
  return new Set(wanted.flatMap((tag) => [tag, tag.split('-', 1)[0] ?? '']));
}
