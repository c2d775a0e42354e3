import type { Registration } from './registration.ts';

/** A registration and where it comes from. */
export interface RegistrationFile {
  /** Index of the file in the list of registration files. */
  readonly index: number;
  /** Path of the file. */
  readonly file: string;
  readonly registration: Registration;
}

/** A mistake in a registration file. */
export interface RegistrationProblem {
  /** Index of the file in the list of registration files. */
  readonly index: number;
  /** Begins with the place: file, line and column. */
  readonly message: string;
}
