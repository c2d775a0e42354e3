/** The only sender of mail: renders mails from templates and sends them by durable jobs. */
import { fileURLToPath } from 'node:url';

export { type EmailOptions, type MailConfig, mailSection } from './config.ts';
export { MailFailure } from './mail-failure.ts';
export { type Mail, type MailImage, Mails, type MailsDeps, mailTemplateFolders } from './mails.ts';
export { plainName } from './plain-name.ts';
export { Smtp } from './smtp.ts';

/** Folder of the layout of mails (`_mail.html`), its style sheet, and the test mail. */
export const mailTemplates = fileURLToPath(new URL('./templates', import.meta.url));
