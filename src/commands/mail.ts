import { ownCommand } from '../kernel/process/index.ts';
import { randomString, systemRandomness } from '../kernel/randomness.ts';
import { Templates } from '../kernel/templates/index.ts';
import { type EmailOptions, mailTemplateFolders, mailTemplates, Smtp } from '../mail/index.ts';
import { type ConfigFlags, configPaths, readConfiguration } from './configuration-files.ts';
import { CommandFailure } from './failure.ts';

/** `hearth mail test`: sends one mail by the mail server of the configuration. The homeserver need not run. */
export async function testMail(address: string, flags: ConfigFlags): Promise<void> {
  if (!/^[^\s@]+@[^\s@]+$/.test(address)) throw new CommandFailure(`${address} is not a mail address`);
  const paths = configPaths(flags);
  if (paths.length === 0) throw new CommandFailure('give the configuration with -c');
  const { mail, server } = readConfiguration(paths, { environment: process.env }).values;
  const { email, templates } = mail;
  if (email === null) {
    throw new CommandFailure(
      `the configuration has no option email, so this server sends no mail; "${ownCommand} config explain email" lists its options`,
    );
  }
  const smtp = new Smtp(email);
  const { host, port } = smtp.server;
  process.stdout.write(
    `Sending a mail from ${smtp.from} to ${address} by ${host}:${port}, ${securityOf(email)} …\n`,
  );
  const folders = mailTemplateFolders(templates.custom_template_directory, email, [mailTemplates]);
  const values = { app_name: email.app_name, server_name: server.server_name };
  const rendering = new Templates({ folders });
  try {
    await smtp.send({
      to: address,
      subject: `[${server.server_name}] Mail works`,
      html: await rendering.render('mail_test.html', values),
      text: await rendering.render('mail_test.txt', values),
      messageId: `${randomString(systemRandomness, 24)}@${server.server_name.replace(/:\d+$/, '')}`,
    });
  } catch (error) {
    throw new CommandFailure(error instanceof Error ? error.message : String(error));
  }
  process.stdout.write(
    'The mail server has accepted the mail. If it does not arrive, look into the spam folder, and at the SPF and DKIM records of the domain of email.notif_from.\n',
  );
}

function securityOf({ force_tls, enable_tls, require_transport_security }: EmailOptions): string {
  if (force_tls) return 'with TLS from the first byte';
  if (!enable_tls) return 'without TLS';
  return require_transport_security ? 'with STARTTLS' : 'with STARTTLS if the server offers it';
}
