import { createPublicKey, createSecretKey, type KeyObject } from 'node:crypto';

/** An algorithm or a key of `jwt_config` that cannot be used. */
export class JwtKeyProblem extends Error {
  readonly option: 'jwt_config.algorithm' | 'jwt_config.secret';

  constructor(option: JwtKeyProblem['option'], problem: string) {
    super(problem);
    this.option = option;
  }
}

/** Returns the key that verifies the signatures of JSON web tokens. @throws JwtKeyProblem */
export function jwtKey(algorithm: string, secret: string): KeyObject {
  const isSymmetric = /^HS(256|384|512)$/.test(algorithm);
  const isPem = secret.trimStart().startsWith('-----BEGIN');
  if (
    !isSymmetric &&
    !/^([RP]S(256|384|512)|ES(256|384|512)|EdDSA|Ed25519|ML-DSA-(44|65|87))$/.test(algorithm)
  ) {
    throw new JwtKeyProblem('jwt_config.algorithm', `${algorithm} is not a known signature algorithm`);
  }
  if (isSymmetric && isPem) {
    throw new JwtKeyProblem(
      'jwt_config.secret',
      `a key in PEM form cannot be the secret of ${algorithm}, since public keys are not secret`,
    );
  }
  if (isSymmetric) return createSecretKey(Buffer.from(secret));
  try {
    return createPublicKey(secret);
  } catch (error) {
    throw new JwtKeyProblem('jwt_config.secret', `not a public key in PEM form: ${(error as Error).message}`);
  }
}
