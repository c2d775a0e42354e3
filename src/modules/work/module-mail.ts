import type { Database } from '../../kernel/database/index.ts';
import type { Mails } from '../../mail/index.ts';
import type { MailAccess } from '../api/index.ts';
import type { ModuleContext } from '../calls/module-context.ts';

/** Returns the access to mail that modules receive. @param mails returns `undefined` where the server sends no mail */
export const mailAccess = (
  database: Database,
  mails: () => Mails | undefined,
  context: ModuleContext,
): MailAccess => ({
  get isEnabled() {
    return mails() !== undefined;
  },
  send: ({ to, subject, text, html }) =>
    context.leave(async () => {
      const sender = mails();
      if (sender === undefined) throw new Error('This server sends no mail: the option email is not set');
      const mail = {
        to,
        html: 'mail_text.html',
        text: 'mail_text.txt',
        subject: subject.replaceAll('%', '%%'),
        values: { subject, text, html: html ?? null },
      };
      await database.transaction((writer) => sender.schedule(writer, mail));
    }),
});
