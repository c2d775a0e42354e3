import { nullable, object, option, type SectionType, section, string } from '../kernel/config/index.ts';
import { emailOption } from './email-options.ts';

/** Names that subjects may contain as `%(name)s`. */
const placeholders = new Set(['app', 'person', 'room', 'server_name']);

/** Options for mail, and for the templates of mails and pages. */
export const mailSection = section({
  title: 'Email',
  description:
    'How mail is sent, and the texts of mails. Without the option `email` the server sends no mail.',
  options: {
    email: emailOption,
    templates: option(
      object({
        custom_template_directory: option(nullable(string({ minLength: 1 })), {
          description:
            'A directory with your own templates for mails and pages. Templates missing there are taken from the built-in ones.',
          default: null,
        }),
      }),
      { description: 'Templates of mails and pages.' },
    ),
  },
  rules: [
    ({ email }, view) => {
      if (email === null) return;
      if (email.notif_from === null) {
        view.error('email.notif_from', 'must be given when email is given');
      }
      if (email.force_tls && email.require_transport_security) {
        view.warn('email.require_transport_security', 'has no effect with force_tls, which is stricter');
      }
      for (const [name, subject] of Object.entries(email.subjects)) {
        for (const [placeholder, value] of subject.matchAll(/%\((\w+)\)s/g)) {
          if (!placeholders.has(value!))
            view.error(`email.subjects.${name}`, `has the unknown placeholder ${placeholder}`);
        }
      }
      for (const name of ['force_tls', 'require_transport_security'] as const) {
        if (email[name] && !email.enable_tls) {
          view.error(`email.${name}`, 'contradicts enable_tls: false, which turns TLS off');
        }
      }
    },
  ],
});

export type MailConfig = SectionType<typeof mailSection>;

export type EmailOptions = NonNullable<MailConfig['email']>;
