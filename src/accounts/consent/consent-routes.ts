import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { Type } from 'typebox';
import { type Reply, type Route, route } from '../../kernel/http/index.ts';
import { Pages, pageTemplates } from '../../kernel/pages/index.ts';
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

/** The language of the templates when the browser asks for none that exists. */
const usualLanguage = 'en';

const versionForm = /^[\w.-]{1,64}$/;

/**
 * Shows the policy of `user_consent`: to everyone, and with a signed link (`u`, `h`) a form by which the user agrees.
 * Nothing without `template_dir`. Parameters and values of the templates are those of the reference server.
 */
export function consentRoutes({ consents, accounts }: ConsentRoutesDeps, options: Options): Route[] {
  const folder = options.user_consent?.template_dir ?? null;
  if (folder === null) return [];
  const currentVersion = options.user_consent?.version ?? undefined;
  const languages = languagesIn(folder);

  const show = (
    language: string,
    name: string,
    values: Readonly<Record<string, unknown>>,
  ): Promise<Reply> => {
    if (!existsSync(join(folder, language, name))) throw notFound('There is no such version of the policy');
    const pages = languages.get(language) ?? openPages(folder, language);
    languages.set(language, pages);
    return pages.page(name, values);
  };
  const versionIn = (given: string | undefined): string => {
    const version = given ?? currentVersion;
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
        return show(chosenLanguage(languages, headers['accept-language']), `${version}.html`, {
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
        await consents.record(await userIn(u, h), version);
        return show(chosenLanguage(languages, headers['accept-language']), 'success.html', { version });
      },
    ),
  ];
}

/** The languages of the templates: the names of the folders. Their pages are opened when they are needed. */
function languagesIn(folder: string): Map<string, Pages | undefined> {
  const entries = existsSync(folder) ? readdirSync(folder, { withFileTypes: true }) : [];
  return new Map(entries.filter((entry) => entry.isDirectory()).map(({ name }) => [name, undefined]));
}

const openPages = (folder: string, language: string) =>
  new Pages(new Templates({ folders: [join(folder, language), pageTemplates] }));

/** The first language that the browser accepts and that exists. */
function chosenLanguage(
  languages: ReadonlyMap<string, unknown>,
  accepted: string | string[] | undefined,
): string {
  const wanted = String(accepted ?? '')
    .split(',')
    .map((part) => part.split(';', 1)[0]?.trim() ?? '');
  const found = wanted.flatMap((tag) => [tag, tag.split('-', 1)[0] ?? '']).find((tag) => languages.has(tag));
  return found ?? usualLanguage;
}
