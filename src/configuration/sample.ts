import { stringify } from 'yaml';
import { sections } from '../configuration.ts';
import { Findings } from '../kernel/config/index.ts';
import { allPaths } from '../kernel/config/option-paths.ts';
import { provenOptions } from '../kernel/config/proven-options.ts';
import { givenOptions } from '../kernel/config/sources/given.ts';
import { parseYaml } from '../kernel/config/sources/yaml-source.ts';

/** The choices for a first configuration. Paths are used as they are given. */
export interface SampleChoices {
  readonly serverName: string;
  /** How operators call this program, for the commands that the comments name. */
  readonly command: string;
  /** The directory of the database, the media, the signing key and the secrets. */
  readonly dataDirectory: string;
  readonly port?: number;
  readonly bindAddresses?: readonly string[];
  /** Where clients reach the server; needed behind a reverse proxy. */
  readonly publicBaseurl?: string;
  /** A secret for signing tokens. It is written into the file. */
  readonly macaroonSecretKey: string;
  /** A secret for protecting forms. It is written into the file. */
  readonly formSecret: string;
}

/** An option in the file, either set or commented out as an example. */
interface SampleEntry {
  readonly option: string;
  readonly value: unknown;
  readonly commented?: true;
  /** Replaces the option's description in the comment. */
  readonly note?: string;
}

const lineWidth = 100;

const introduction = (
  command: string,
) => `# Configuration of a Hearth homeserver. Keep it private: it holds secrets.
#
# These are the options that a new server needs. To see the others:
#
#   ${command} config docs             prints all options with their defaults
#   ${command} config explain PATH     explains one option
#   ${command} config check FILE       checks a configuration
`;

/**
 * Returns the first configuration of a new server as YAML, with the descriptions of the options as comments. Options
 * that are not in force yet, because no test proves their effect, are commented out. The configuration passes
 * `config check --strict`. It holds secrets, so its file needs private permissions.
 */
export function sampleConfiguration(choices: SampleChoices): string {
  const descriptions = new Map(
    allPaths(sections).map(({ path, schema }) => [path, schema.description ?? '']),
  );
  const parts = entries(choices).map(({ option, value, commented, note }) => {
    const yaml = stringify({ [option]: value }, { lineWidth: 0 });
    const isComment = commented || !isInForce(yaml);
    return `${comment(note ?? descriptions.get(option) ?? '')}${isComment ? yaml.replace(/^(?=.)/gm, '# ') : yaml}`;
  });
  return [introduction(choices.command), ...parts].join('\n');
}

const proven: ReadonlySet<string> = new Set(provenOptions);

/** Whether a test proves the effect of every option that a document sets. */
function isInForce(yaml: string): boolean {
  const document = parseYaml('sample', yaml, new Findings());
  return document !== undefined && givenOptions(document, sections).every(({ path }) => proven.has(path));
}

function entries(choices: SampleChoices): SampleEntry[] {
  const { serverName, dataDirectory, port = 8008, bindAddresses = ['127.0.0.1', '::1'] } = choices;
  const within = (name: string) => `${dataDirectory.replace(/\/+$/, '')}/${name}`;
  const publicBaseurl: SampleEntry = choices.publicBaseurl
    ? { option: 'public_baseurl', value: choices.publicBaseurl }
    : { option: 'public_baseurl', value: 'https://matrix.example.org/', commented: true };
  return [
    { option: 'server_name', value: serverName },
    publicBaseurl,
    {
      option: 'listeners',
      value: [listener(port, bindAddresses)],
      note: 'The addresses on which the server listens. Behind a reverse proxy, set x_forwarded to true so that the server sees the addresses of clients.',
    },
    { option: 'database', value: { name: 'sqlite3', args: { database: within('homeserver.db') } } },
    {
      option: 'database',
      value: {
        name: 'psycopg2',
        args: { host: 'localhost', dbname: 'hearth', user: 'hearth', password: '…' },
      },
      commented: true,
      note: 'A large server needs a PostgreSQL database instead, for example:',
    },
    { option: 'media_store_path', value: within('media_store') },
    { option: 'signing_key_path', value: within(`${serverName.replaceAll(':', '_')}.signing.key`) },
    { option: 'registration_shared_secret_path', value: within('registration_shared_secret') },
    { option: 'macaroon_secret_key', value: choices.macaroonSecretKey },
    { option: 'form_secret', value: choices.formSecret },
    { option: 'enable_registration', value: false },
    { option: 'registration_requires_token', value: true, commented: true },
    { option: 'trusted_key_servers', value: [{ server_name: 'matrix.org' }] },
    { option: 'suppress_key_server_warning', value: true },
    { option: 'report_stats', value: false },
  ];
}

function listener(port: number, bindAddresses: readonly string[]) {
  return {
    port,
    bind_addresses: bindAddresses,
    type: 'http',
    x_forwarded: false,
    resources: [{ names: ['client', 'federation'], compress: false }],
  };
}

/** Formats a text as comment lines of limited length. */
function comment(text: string): string {
  const lines: string[] = [];
  for (const word of text.replace(/`/g, '').split(/\s+/)) {
    const last = lines.at(-1);
    if (last === undefined || last.length + word.length >= lineWidth) lines.push(`# ${word}`);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return `${lines.join('\n')}\n`;
}
