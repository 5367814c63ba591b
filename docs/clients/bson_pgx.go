package main

// Documents of docpatterns as structs and maps in pgx, by MongoDB's package bson.

import (
	"context"
	"errors"

	"github.com/jackc/pgconn"
	"github.com/jackc/pgtype"
	"github.com/jackc/pgx/v4"
	"go.mongodb.org/mongo-driver/bson"
	"go.mongodb.org/mongo-driver/bson/bsontype"
)

// Value is a bson_value: one byte of type, then the value. NULL has type 0.
type Value struct{ bson.RawValue }

func (v *Value) Set(src interface{}) (err error) {
	v.RawValue = bson.RawValue{}
	if src != nil {
		v.Type, v.Value, err = bson.MarshalValue(src)
	}
	return err
}

func (v Value) Get() (dst interface{}) {
	if v.Type != 0 && v.Unmarshal(&dst) != nil {
		return nil
	}
	return dst
}

func (v *Value) AssignTo(dst interface{}) error {
	if v.Type == 0 {
		return pgtype.NullAssignTo(dst)
	}
	return v.Unmarshal(dst)
}

func (v *Value) DecodeBinary(ci *pgtype.ConnInfo, src []byte) error {
	v.RawValue = bson.RawValue{}
	if src != nil {
		v.Type, v.Value = bsontype.Type(src[0]), append([]byte{}, src[1:]...)
	}
	return nil
}

func (v Value) EncodeBinary(ci *pgtype.ConnInfo, buf []byte) ([]byte, error) {
	if v.Type == 0 {
		return nil, nil
	}
	return append(append(buf, byte(v.Type)), v.Value...), nil
}

// Document is a bson.
type Document struct{ Value }

func (d *Document) DecodeBinary(ci *pgtype.ConnInfo, src []byte) error {
	d.RawValue = bson.RawValue{}
	if src != nil {
		d.Type, d.Value.Value = bsontype.EmbeddedDocument, append([]byte{}, src...)
	}
	return nil
}

func (d Document) EncodeBinary(ci *pgtype.ConnInfo, buf []byte) ([]byte, error) {
	switch d.Type {
	case 0:
		return nil, nil
	case bsontype.EmbeddedDocument:
		return append(buf, d.Value.Value...), nil
	}
	return nil, errors.New("not a document")
}

// Register is also a function for AfterConnect of a pool.
func Register(ctx context.Context, conn *pgx.Conn) error {
	for name, value := range map[string]pgtype.Value{"bson": &Document{}, "bson_value": &Value{}} {
		var oid uint32
		if err := conn.QueryRow(ctx, "SELECT $1::text::regtype::oid", name).Scan(&oid); err != nil {
			return err
		}
		conn.ConnInfo().RegisterDataType(pgtype.DataType{Value: value, Name: name, OID: oid})
	}
	return nil
}

// Transaction runs work in a transaction, again if it conflicts with another one.
func Transaction(ctx context.Context, conn *pgx.Conn, options pgx.TxOptions,
	work func(pgx.Tx) error) error {
	for left := 10; ; left-- {
		err := conn.BeginTxFunc(ctx, options, work)
		var failure *pgconn.PgError
		if left == 1 || !errors.As(err, &failure) ||
			failure.Code != "40001" && failure.Code != "40P01" {
			return err
		}
	}
}
