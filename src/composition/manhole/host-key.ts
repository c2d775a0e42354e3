import { readFileSync } from 'node:fs';
import type { ParsedKey } from 'ssh2';
import ssh2 from 'ssh2';
import type { HearthConfiguration } from '../../configuration.ts';
import { StartFailure } from '../../kernel/start-failure.ts';

/** The host key of the debugging console when none is configured. It is publicly known, so it protects nothing. */
const builtInKey = `-----BEGIN OPENSSH PRIVATE KEY-----
b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtz
c2gtZWQyNTUxOQAAACDxTeTeCjvyzMvgBQTRhnUxxv2uGRiSwRZ8CAUnxMwFKAAA
ALD7XyNr+18jawAAAAtzc2gtZWQyNTUxOQAAACDxTeTeCjvyzMvgBQTRhnUxxv2u
GRiSwRZ8CAUnxMwFKAAAAEDlF2GQS/33NLQvAj9yhbUdJs6qgBi2rbfrEgRZOGxp
0PFN5N4KO/LMy+AFBNGGdTHG/a4ZGJLBFnwIBSfEzAUoAAAAKGhlYXJ0aCBkZWJ1
Z2dpbmcgY29uc29sZSwgcHVibGljbHkga25vd24BAgMEBQ==
-----END OPENSSH PRIVATE KEY-----
`;

export interface HostKey {
  /** The private key as text, in a format that OpenSSH writes. */
  readonly privateKey: string;
  /** Whether it is the key that is part of the program. */
  readonly isBuiltIn: boolean;
}

/**
 * Reads the host key of the debugging console.
 * @throws StartFailure when a file cannot be read or is not a key, or when the private key and the public key do not
 * belong together
 */
export function readHostKey({ process: { manhole_settings: settings } }: HearthConfiguration): HostKey {
  const { ssh_priv_key_path: privatePath, ssh_pub_key_path: publicPath } = settings;
  if (privatePath === null) return { privateKey: builtInKey, isBuiltIn: true };
  const { text, key } = readKey('manhole_settings.ssh_priv_key_path', privatePath);
  if (!key.isPrivateKey()) {
    throw new StartFailure(`manhole_settings.ssh_priv_key_path: ${privatePath} is not a private key`);
  }
  if (publicPath !== null) requirePair(key, publicPath);
  return { privateKey: text, isBuiltIn: false };
}

/** Requires that the file has the public half of the key, so that operators notice a replaced key file. */
function requirePair(key: ParsedKey, publicPath: string): void {
  const { key: publicKey } = readKey('manhole_settings.ssh_pub_key_path', publicPath);
  if (publicKey.getPublicSSH().equals(key.getPublicSSH())) return;
  throw new StartFailure(
    `manhole_settings.ssh_pub_key_path: ${publicPath} is not the public half of the key in ssh_priv_key_path`,
  );
}

function readKey(option: string, path: string): { readonly text: string; readonly key: ParsedKey } {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new StartFailure(`${option}: cannot read ${path}: ${(error as Error).message}`, { cause: error });
  }
  const key = ssh2.utils.parseKey(text);
  if (!(key instanceof Error)) return { text, key };
  const advice = 'Keys with a passphrase are not supported; `ssh-keygen -t ed25519 -N ""` makes a key';
  throw new StartFailure(`${option}: ${path} is not a key: ${key.message}. ${advice}`, { cause: key });
}
