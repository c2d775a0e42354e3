import { accountTemplates } from '../accounts/index.ts';
import type { Route } from '../kernel/http/index.ts';
import { Pages, pageStaticFiles, pageTemplates, staticFiles } from '../kernel/pages/index.ts';
import { operatorFolder, Templates } from '../kernel/templates/index.ts';
import { type MailConfig, mailTemplateFolders, mailTemplates } from '../mail/index.ts';
import { oauthTemplates } from '../oauth/index.ts';
import { pusherTemplates } from '../pushers/index.ts';
import { ssoTemplates } from '../sso/index.ts';
import { thirdPartyIdTemplates } from '../third-party-ids/index.ts';
import { welcomeTemplates } from '../welcome/index.ts';

/** Folders of built-in templates; each template name occurs in one of them only. */
export const templateFolders: readonly string[] = [
  pageTemplates,
  welcomeTemplates,
  accountTemplates,
  mailTemplates,
  thirdPartyIdTemplates,
  pusherTemplates,
  oauthTemplates,
  ssoTemplates,
];

/**
 * Opens the templates of pages.
 * @param custom folder of the operator's templates; these replace built-in templates with the same names
 * @throws StartFailure when there is no such folder
 */
export function openPages(custom: string | null): Pages {
  const folders =
    custom === null
      ? templateFolders
      : [operatorFolder('templates.custom_template_directory', custom), ...templateFolders];
  return new Pages(new Templates({ folders }));
}

/**
 * Opens the templates of mails and of the pages that links in mails lead to.
 * @throws StartFailure when a folder of the operator does not exist
 */
export function openMailTemplates({ email, templates }: MailConfig): Templates {
  const custom = templates.custom_template_directory;
  return new Templates({ folders: mailTemplateFolders(custom, email, templateFolders) });
}

/** Style sheets and images of pages. */
export const staticRoutes: readonly Route[] = [staticFiles('/_proto/static/*', pageStaticFiles)];
